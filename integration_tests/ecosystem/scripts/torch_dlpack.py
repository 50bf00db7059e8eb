"""Arrays of JAX and tensors of PyTorch that share memory by DLPack, and a layer of PyTorch in a
jitted function."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import torch
from torch.utils.dlpack import from_dlpack as torch_from_dlpack, to_dlpack

DTYPES = ["float32", "float16", "bfloat16", "int8", "int16", "int32", "uint8", "bool", "complex64"]

results = {}
for dtype in DTYPES:
    x = jnp.arange(6).reshape(2, 3).astype(dtype)
    tensor = torch.from_dlpack(x)
    again = jnp.from_dlpack(tensor)
    results[dtype] = [
        str(tensor.dtype),
        list(tensor.shape),
        tensor.data_ptr() == x.unsafe_buffer_pointer() == again.unsafe_buffer_pointer(),
        str(again.dtype),
        bool((again == x).all()),
    ]

matrix = torch.arange(6.0).reshape(2, 3)
shapes = {
    "transposed": matrix.T,
    "offset": torch.arange(7.0)[1:],
    "scalar": torch.tensor(3.0),
    "empty": torch.zeros(0, 3),
}
for name, tensor in shapes.items():
    imported = jax.dlpack.from_dlpack(tensor)
    copied = jax.dlpack.from_dlpack(tensor, copy=True)
    results[name] = [list(imported.shape), imported.tolist(), copied.tolist()]

results["by torch.utils"] = torch_from_dlpack(jnp.arange(3.0)).tolist()
results["alive in torch"] = torch.from_dlpack(jnp.arange(1000.0) + 1).sum().item()
results["alive in jax"] = float(jnp.from_dlpack(torch.arange(1000.0) + 1).sum())

refused = {}
for name, tensor in {
    "needs a gradient": torch.ones(3, requires_grad=True),
    "sparse": torch.eye(3).to_sparse(),
}.items():
    try:
        jnp.from_dlpack(tensor)
    except BufferError as error:
        refused[name] = str(error)
results["refused"] = refused

generator = torch.Generator().manual_seed(0)
weight = torch.randn(4, 8, generator=generator)


def layer(x: torch.Tensor) -> torch.Tensor:
    """A layer of PyTorch."""
    return torch.tanh(torch.nn.functional.linear(x, weight))


def on_host(function, like, *args):
    """Call a function of tensors from a jitted function."""

    def call(*arrays):
        outputs = function(*(torch.from_dlpack(jnp.asarray(array)) for array in arrays))
        return np.asarray(outputs.detach())

    return jax.pure_callback(call, like, *args, vmap_method="sequential")


@jax.custom_vjp
def torch_layer(x):
    return on_host(layer, jax.ShapeDtypeStruct((x.shape[0], 4), x.dtype), x)


def forward(x):
    return torch_layer(x), x


def backward(x, cotangent):
    def pull(x, cotangent):
        return torch.autograd.grad(layer(x.requires_grad_()), x, cotangent)[0]

    return (on_host(pull, jax.ShapeDtypeStruct(x.shape, x.dtype), x, cotangent),)


torch_layer.defvjp(forward, backward)


@jax.jit
def loss(kernel, x):
    return jnp.square(torch_layer(x @ kernel) - 0.5).mean()


x = jnp.cos(jnp.arange(24.0)).reshape(8, 3)
kernel = jnp.sin(jnp.arange(24.0)).reshape(3, 8)
results["losses"] = []
for _ in range(5):
    value, gradient = jax.value_and_grad(loss)(kernel, x)
    kernel = kernel - 0.5 * gradient
    results["losses"].append(float(value))
same = jnp.tanh(x @ kernel @ jnp.from_dlpack(weight).T)
results["layer"] = bool(jnp.allclose(torch_layer(x @ kernel), same, rtol=1e-4, atol=1e-5))
results["gradient"] = float(jnp.abs(gradient).sum())
results["capsule"] = type(to_dlpack(matrix)).__name__
print(json.dumps(results))
