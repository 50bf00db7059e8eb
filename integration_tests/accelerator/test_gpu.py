"""Tests on an NVIDIA GPU through its plugin; skipped without one."""

from __future__ import annotations

import pathlib
import subprocess
import sys
from functools import partial

import numpy as np
import pytest

if not pathlib.Path("/dev/nvidiactl").exists() and not pathlib.Path("/dev/nvidia0").exists():
    pytest.skip("no NVIDIA device on this machine", allow_module_level=True)

import primax
import primax.numpy as jnp
from primax import lax, random
from test_support import assert_close

try:
    GPU = primax.devices("gpu")[0]
except RuntimeError as e:
    pytest.skip(f"no GPU platform: {e}", allow_module_level=True)
CPU = primax.devices("cpu")[0]


def on(device, x):
    """Place an array on a device."""
    return primax.device_put(x, device)


close = partial(assert_close, rtol=1e-4)


def test_gpu_is_the_default_and_jax_is_not_imported() -> None:
    code = (
        "import sys, primax, primax.numpy as jnp; x = jnp.arange(3.0) + 1;"
        "print(primax.default_backend(), sorted(x.devices()), 'jax' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    backend, rest = done.stdout.split(" ", 1)
    assert backend in ("gpu", "cuda")
    assert rest.strip().endswith("False")
    assert "uda" in rest


FUNCTIONS = {
    "elementwise": lambda x: jnp.tanh(x * 2.0 + 1.0) ** 2 / (1.0 + x * x),
    "exponentials": lambda x: lax.exp(x) + lax.log(1.5 + x * x) + lax.rsqrt(x * x + 1.0),
    "trigonometric": lambda x: lax.tan(x) + lax.atan2(x, 2.0 + x * 0) + lax.asinh(x),
    "error function": lambda x: lax.erf(x) + lax.erf_inv(x * 0.5),
    "reductions": lambda x: jnp.sum(x, axis=1) + jnp.max(x) - jnp.mean(x, axis=0)[0],
    "product": lambda x: jnp.sin(x @ x.T),
    "indexing": lambda x: x[::-1, 1:3] * x[jnp.array([2, 0, 1, 3])][:, :2],
    "sorting": lambda x: lax.sort(x, dimension=1),
    "running sum": lambda x: lax.cumsum(x, axis=1),
    "scan": lambda x: lax.scan(lambda c, r: (jnp.sin(c) + r, c * r), x[0], x)[1],
    "while": lambda x: lax.while_loop(lambda c: jnp.sum(c) < 40.0, lambda c: c * c + 1.0, x),
    "cond": lambda x: lax.cond(jnp.sum(x) > 0, jnp.sin, jnp.cos, x),
}
FORWARD_ONLY = {"while"}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_and_gradients_agree_with_the_cpu(name: str) -> None:
    f = FUNCTIONS[name]
    x = np.linspace(-0.9, 0.9, 16, dtype=np.float32).reshape(4, 4)
    close(f(on(GPU, x)), f(on(CPU, x)))
    close(primax.jit(f)(on(GPU, x)), f(on(CPU, x)))
    if name not in FORWARD_ONLY:
        g = primax.jit(primax.grad(lambda v: jnp.sum(f(v) * 1.5)))
        close(g(on(GPU, x)), g(on(CPU, x)))
    stacked = np.stack([x, x * 0.5])
    close(primax.vmap(f)(on(GPU, stacked)), primax.vmap(f)(on(CPU, stacked)))


def test_convolution() -> None:
    x = np.random.default_rng(0).normal(size=(2, 3, 8, 8)).astype(np.float32)
    w = np.random.default_rng(1).normal(size=(4, 3, 3, 3)).astype(np.float32)

    def f(x, w):
        return jnp.sum(lax.conv_general_dilated(x, w, (1, 1), "SAME") ** 2)

    g = primax.jit(primax.grad(f, (0, 1)))
    for a, b in zip(g(on(GPU, x), on(GPU, w)), g(on(CPU, x), on(CPU, w))):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=2e-2, atol=2e-1)


def test_random_bits_equal_the_cpu() -> None:
    a = random.bits(on(GPU, random.PRNGKey(42)), (1000,))
    b = random.bits(on(CPU, random.PRNGKey(42)), (1000,))
    assert (np.asarray(a) == np.asarray(b)).all()


def test_low_precision() -> None:
    for dtype in (jnp.bfloat16, jnp.float16):
        x = on(GPU, np.arange(6.0, dtype=np.float32)).astype(dtype)
        assert x.dtype == dtype
        assert float(jnp.sum(x * x)) == 55.0


def test_transfers_donation_and_repr() -> None:
    x = on(GPU, np.arange(4.0, dtype=np.float32))
    assert x.devices() == {GPU}
    assert np.asarray(on(CPU, x)).tolist() == [0.0, 1.0, 2.0, 3.0]
    assert repr(x) == "Array([0., 1., 2., 3.], dtype=float32)"
    y = primax.jit(lambda v: v + 1.0, donate_argnums=0)(x)
    assert x.is_deleted()
    assert float(y[3]) == 4.0
    with pytest.raises(ValueError, match="incompatible devices"):
        y + on(CPU, np.ones(4, np.float32))
