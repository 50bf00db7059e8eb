"""Long loops: memory of each round is freed, and caches are bounded."""

from __future__ import annotations

import gc
import tracemalloc

import numpy as np
import pytest

import primax_core as px
from primax_core import lax
from primax_core._base.caches import Bounded, OfFunctions
from primax_core._runtime.launch import garbage_is_due

X = px.device_put(np.ones(4, np.float32))
S = px.device_put(np.float32(0.5))
JITTED = px.jit(lambda x: lax.sin(x))


def deep(fun, frames: int = 50):
    """Call from deep in the stack, where jaxlib's tracebacks are long."""
    return fun() if not frames else deep(fun, frames - 1)


def bytes_left_by(fun, rounds: int) -> float:
    """Average number of bytes of Python memory that a round allocates and does not free."""
    for _ in range(300):
        fun()
    gc.collect()
    tracemalloc.start()
    try:
        for _ in range(rounds):
            fun()
        gc.collect()
        return tracemalloc.get_traced_memory()[0] / rounds
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "call",
    [lambda: X + X, lambda: -X, lambda: X**3, lambda: lax.sin(X), lambda: JITTED(X),
     lambda: lax.exp(X) * 2.0],
    ids=["add", "neg", "pow", "sin", "jit", "two"],
)  # fmt: skip
def test_executions(call):
    # jaxlib leaves 16 bytes for each frame of the stack until its garbage is collected.
    assert bytes_left_by(lambda: deep(call), 5120) < 200


def functions_anew():
    """Loop bodies that create functions in each round."""
    px.grad(lambda x: lax.sin(x) * x)(S)
    px.vmap(lambda x: lax.sin(x))(X)
    px.jit(lambda x: x * 2.0)(X)
    px.grad(px.jit(lambda x: lax.sin(x)))(S)
    lax.scan(lambda c, x: (c * x, None), S, X)
    lax.cond(True, lambda x: x, lambda x: -x, S)
    f = px.custom_vjp(lambda x: lax.sin(x))
    f.defvjp(lambda x: (f(x), x), lambda x, ct: (ct * x,))
    px.grad(px.jit(lambda x: f(x)))(S)
    px.grad(px.checkpoint(lambda x: lax.sin(x)))(S)


def test_functions_created_in_each_round_are_freed():
    for _ in range(5):
        functions_anew()
    gc.collect()
    before = len(gc.get_objects())
    for _ in range(20):
        functions_anew()
    gc.collect()
    assert len(gc.get_objects()) - before < 200


def test_garbage_collections_run_at_intervals():
    assert sum(garbage_is_due() for _ in range(2560)) == 10


def test_bounded_dicts_evict_the_oldest():
    bounded = Bounded()
    for i in range(bounded.limit + 10):
        bounded[i] = i
    assert len(bounded) == bounded.limit
    assert min(bounded) == 10
    bounded[10] = "again"  # in place: nothing is evicted
    assert min(bounded) == 10


class TestOfFunctions:
    def test_dies_with_the_function(self):
        table = OfFunctions()
        f = lambda: None
        table.of(f)["key"] = 1
        assert table.of(f) == {"key": 1}
        del f
        assert not table._dicts

    def test_is_bounded_if_values_reference_their_functions(self):
        table = OfFunctions(limit=4)
        for i in range(10):
            f = lambda i=i: i
            table.of(f)["itself"] = f
        gc.collect()
        assert sorted(g() for g in table._dicts) == [6, 7, 8, 9]

    def test_functions_without_weak_references_get_their_own_dict(self):
        table = OfFunctions()
        assert table.of([]) == {}
        assert table.of([]) is not table.of([])
