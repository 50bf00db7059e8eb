"""StableHLO out: exported functions are compiled by IREE for its virtual machine, and run there."""

import json

import iree.compiler as compiler
import iree.runtime as runtime
import jax
import jax.numpy as jnp
import numpy as np
from jax import export


def predict(w, v, x):
    return jax.nn.softmax(jnp.tanh(x @ w) @ v, axis=-1)


def loss(w, v, x):
    return -jnp.log(predict(w, v, x)[:, 0]).mean()


def loop(x):
    return jax.lax.fori_loop(0, 10, lambda i, y: jnp.cos(y) + i * 0.1, x)


def cumulative(x):
    order = jnp.argsort(x, axis=-1)
    return jnp.cumsum(jnp.take_along_axis(x, order, axis=-1), axis=-1)


rng = np.random.default_rng(0)
w, v, x = (rng.normal(size=s).astype(np.float32) for s in ((6, 8), (8, 3), (4, 6)))
functions = {
    "predict": (predict, (w, v, x)),
    "gradient": (jax.grad(loss), (w, v, x)),
    "loop": (loop, (x,)),
    "sorted": (cumulative, (x,)),
}
results = {}
for name, (function, arguments) in functions.items():
    exported = export.export(jax.jit(function))(*arguments)
    flatbuffer = compiler.compile_str(
        exported.mlir_module(), target_backends=["llvm-cpu"], input_type="stablehlo"
    )
    module = runtime.load_vm_flatbuffer(flatbuffer, driver="local-task")
    out = module.main(*arguments).to_host()
    np.testing.assert_allclose(out, function(*arguments), rtol=1e-4, atol=1e-5)
    results[name] = np.asarray(out, np.float64).ravel()[:12].tolist()
print(json.dumps(results))
