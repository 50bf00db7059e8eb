"""Numbers of compilations: none after the first round of equal calls."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import primax_core as px
from primax_core import lax
from primax_core._lower import compile as compiling

X = px.device_put(np.linspace(0.1, 0.4, 4).astype(np.float32))
S = px.device_put(np.float32(0.5))


def total(x):
    return lax.reduce_sum(x, (0,))


def custom_forward():
    f = px.custom_jvp(lambda x: lax.sin(x))
    f.defjvp(lambda p, t: (f(*p), t[0] * 2.0))
    return px.grad(f)(S)


def custom_backward():
    f = px.custom_vjp(lambda x: lax.sin(x))
    f.defvjp(lambda x: (f(x), x), lambda x, ct: (ct * x,))
    return px.grad(f)(S)


# Each creates new functions. Eagerly, transformations dispatch the executables of single
# primitives; those of the second table compile jaxprs and look up equal ones.
EAGER = {
    "grad": lambda: px.grad(lambda x: total(lax.sin(x)))(X),
    "vmap": lambda: px.vmap(lambda x: lax.sin(x) * 2.0)(X),
    "jvp": lambda: px.jvp(lambda x: lax.sin(x), (X,), (X,)),
    "vjp": lambda: px.vjp(lambda x: lax.sin(x), X)[1](X),
    "vmap of grad": lambda: px.vmap(px.grad(lambda x: lax.sin(x) * x))(X),
    "grad of vmap": lambda: px.grad(lambda x: total(px.vmap(lambda y: lax.sin(y) * y)(x)))(X),
    "grad of grad": lambda: px.grad(px.grad(lambda x: lax.sin(x) * x))(S),
    "hessian": lambda: px.hessian(lambda x: total(lax.sin(x) * x))(X),
    "custom_jvp": custom_forward,
    "custom_vjp": custom_backward,
}
PROGRAMS = {
    "jit": lambda: px.jit(lambda x: lax.sin(x) * 3.0)(X),
    "grad of jit": lambda: px.grad(px.jit(lambda x: total(lax.sin(x) * x)))(X),
    "scan": lambda: lax.scan(lambda c, t: (c * t, c), S, X),
    "grad of scan": lambda: px.grad(lambda s: lax.scan(lambda c, t: (c * t, c), s, X)[0])(S),
    "cond": lambda: lax.cond(True, lambda x: x + 1.0, lambda x: x - 1.0, X),
    "while_loop": lambda: lax.while_loop(lambda c: c < 3.0, lambda c: c + 1.0, S),
    "checkpoint": lambda: px.grad(px.checkpoint(lambda x: lax.sin(lax.sin(x))))(S),
    "linearize": lambda: px.linearize(lambda x: lax.sin(x) * x, S)[1](S),
}


@pytest.fixture
def counts(monkeypatch):
    """Counts of modules compiled and of modules lowered."""
    counted = {"compiled": 0, "lowered": 0}

    class Counted(compiling.Loaded):
        def __init__(self, *args):
            counted["compiled"] += 1
            super().__init__(*args)

    def lower_module(*args, lower=compiling.lower_module, **options):
        counted["lowered"] += 1
        return lower(*args, **options)

    monkeypatch.setattr(compiling, "Loaded", Counted)
    monkeypatch.setattr(compiling, "lower_module", lower_module)
    # An executable in the cache on disk is not lowered.
    kept_on_disk = px.config.enable_compilation_cache
    px.config.update("enable_compilation_cache", False)
    yield counted
    px.config.update("enable_compilation_cache", kept_on_disk)


@pytest.mark.rotate(every=4, whole=True)
@pytest.mark.parametrize("name", EAGER)
def test_eager_transformations_lower_nothing(name, counts):
    EAGER[name]()
    EAGER[name]()
    counts.update(compiled=0, lowered=0)
    for _ in range(3):
        EAGER[name]()
        gc.collect()
    assert counts == {"compiled": 0, "lowered": 0}


@pytest.mark.parametrize("name", PROGRAMS)
def test_equal_jaxprs_are_compiled_once(name, counts):
    PROGRAMS[name]()
    counts.update(compiled=0)
    for _ in range(3):
        gc.collect()
        PROGRAMS[name]()
    assert counts["compiled"] == 0


def test_the_number_of_jaxprs_is_bounded():
    for n in range(1, compiling._LATEST_LIMIT + 10):
        px.jit(lambda x, n=n: x * float(n))(S)
    assert len(compiling._latest) == compiling._LATEST_LIMIT
    px.clear_caches()
    assert not compiling._latest
