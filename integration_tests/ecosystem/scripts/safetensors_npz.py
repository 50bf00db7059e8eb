"""Parameters in files of safetensors and NumPy: saved, read, and trained on."""

import json
import tempfile
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from safetensors import safe_open
from safetensors.flax import load_file, save_file
from safetensors.numpy import load_file as load_numpy

params = {
    "dense.kernel": jax.random.normal(jax.random.key(0), (16, 4)),
    "dense.bias": jnp.arange(4.0),
    "half": jnp.linspace(-1, 1, 6).astype(jnp.bfloat16),
    "float16": jnp.linspace(-2, 2, 5).astype(jnp.float16),
    "steps": jnp.int32(7),
    "mask": jnp.array([True, False, True]),
    "bytes": jnp.arange(5, dtype=jnp.uint8),
    "empty": jnp.zeros((0, 3)),
}


def same(a, b):
    """Return True for equal dtypes, shapes and bits."""
    a, b = np.asarray(a), np.asarray(b)
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


results = {}
with tempfile.TemporaryDirectory() as scratch:
    path = Path(scratch) / "params.safetensors"
    save_file(params, path, metadata={"format": "jax"})
    again = load_file(path)
    results["safetensors"] = sorted(name for name in params if same(params[name], again[name]))
    results["classes"] = all(isinstance(value, jax.Array) for value in again.values())
    numpy = load_numpy(path)
    results["read by numpy"] = sorted(name for name in numpy if same(params[name], numpy[name]))
    with safe_open(path, framework="flax") as file:
        part = file.get_slice("dense.kernel")[2:6, :2]
        results["slice"] = same(part, params["dense.kernel"][2:6, :2])
        results["metadata"] = file.metadata()

    plain = {name: value for name, value in params.items() if name != "half"}
    np.savez(Path(scratch) / "params.npz", **plain)
    jnp.savez(Path(scratch) / "jnp.npz", **plain)
    jnp.save(Path(scratch) / "one.npy", params["dense.kernel"])
    for name in ("params.npz", "jnp.npz"):
        loaded = jnp.load(Path(scratch) / name)
        results[name] = sorted(key for key in plain if same(plain[key], loaded[key]))
    results["one"] = same(jnp.load(Path(scratch) / "one.npy"), params["dense.kernel"])


@jax.jit
def loss(kernel, bias):
    x = jnp.cos(jnp.arange(48.0)).reshape(3, 16)
    return jnp.square(x @ kernel + bias).mean()


results["loss"] = float(loss(again["dense.kernel"], again["dense.bias"]))
gradient = jax.grad(loss)(loaded["dense.kernel"], loaded["dense.bias"])
results["gradient"] = float(jnp.abs(gradient).sum())
print(json.dumps(results))
