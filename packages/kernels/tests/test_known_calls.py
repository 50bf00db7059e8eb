"""Kernels as values: equal kernels are equal, and a new `pallas_call` finds what is known."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest
from kernels_under_test import CASES, F32, operands

import primax_kernels as pk
from primax_core import (
    ShapeDtypeStruct,
    clear_caches,
    default_matmul_precision,
    device_put,
    jit,
    lax,
    make_jaxpr,
)
from primax_kernels._call import _KernelCall
from primax_kernels._content import NoKey, content_key
from primax_kernels._cpu import grid
from primax_kernels.tpu import CompilerParams

X = np.arange(4, dtype=F32)
OUT = ShapeDtypeStruct((4,), F32)
FACTOR = 2.0


def scaled(factor, traces=None, **options):
    """A new call each time, whose kernel is a closure."""

    def kernel(x, o):
        count()
        o[...] = x[...] * F32(factor)

    count = (lambda: None) if traces is None else traces
    return pk.pallas_call(kernel, OUT, grid=2, in_specs=[half()], out_specs=half(), **options)


def half():
    return pk.BlockSpec((2,), lambda i: i)


class Counter:
    """Counts calls; a global of this module, so that it counts by identity."""

    calls = 0


def count_trace():
    Counter.calls += 1


def traces_of(*calls):
    clear_caches()
    Counter.calls = 0
    results = [np.asarray(call()).tolist() for call in calls]
    return Counter.calls, results


def test_a_new_call_of_an_equal_kernel_is_not_traced():
    once = lambda: scaled(2.0, count_trace)(X)
    count, results = traces_of(once, once, once)
    assert count == 1 and results == [[0, 2, 4, 6]] * 3


@pytest.mark.parametrize(
    "first, second",
    [(2.0, 3.0), (0.0, -0.0), (1, 1.0), (1, True), (np.float32(2), np.float64(2))],
    ids=str,
)
def test_other_variables_make_another_kernel(first, second):
    count, (a, b) = traces_of(
        lambda: scaled(first, count_trace)(X), lambda: scaled(second, count_trace)(X)
    )
    assert count == 2
    assert a == (X * F32(first)).tolist() and b == (X * F32(second)).tolist()
    assert np.signbit(b[1]) == np.signbit(F32(second))


def by_global():
    def kernel(x, o):
        count_trace()
        o[...] = x[...] * F32(FACTOR)

    return pk.pallas_call(kernel, OUT)(X)


def test_global_variables_count_by_value(monkeypatch):
    def changed():
        monkeypatch.setitem(globals(), "FACTOR", 5.0)
        return by_global()

    count, results = traces_of(by_global, by_global, changed)
    assert count == 2 and results == [[0, 2, 4, 6]] * 2 + [[0, 5, 10, 15]]


def test_index_maps_blocks_and_grids_count():
    def call(index_map, size=2, steps=2, **options):
        def kernel(x, o):
            o[...] = x[...]

        block = pk.BlockSpec((size,), index_map)
        return pk.pallas_call(
            kernel, OUT, grid=steps, in_specs=[block], out_specs=half(), **options
        )

    same = call(lambda i: i)
    assert call(lambda i: i) is not same  # two lines, two codes
    for flip in (False, True):
        calls = [call(lambda i, flip=flip: 1 - i if flip else i) for _ in range(2)]
        assert calls[0] is calls[1]
        assert calls[0](X).tolist() == ([2, 3, 0, 1] if flip else [0, 1, 2, 3])
    options = {"compiler_params": CompilerParams(dimension_semantics=["parallel"])}
    many = [
        call(index_map, **kw)
        for index_map in [half().index_map]
        for kw in ({}, {"name": "other"}, options, {"input_output_aliases": {0: 0}})
    ]
    assert len(set(map(id, many))) == 4


@pytest.mark.parametrize(
    "value", [[1], {1: 2}, X, object()], ids=["list", "dict", "array", "object"]
)
def test_mutable_variables_have_no_key(value):
    def kernel(x, o):
        o[...] = x[...] * value

    with pytest.raises(NoKey):
        content_key(kernel, [])
    assert pk.pallas_call(kernel, OUT) is not pk.pallas_call(kernel, OUT)


def test_a_changed_variable_of_a_known_kernel():
    def make():
        factor = 2.0

        def kernel(x, o):
            o[...] = x[...] * F32(factor)

        def change(value):
            nonlocal factor
            factor = value

        return kernel, change

    kernel, change = make()
    out = lambda n: ShapeDtypeStruct((n,), F32)
    assert pk.pallas_call(kernel, out(4))(X).tolist() == [0, 2, 4, 6]
    change(3.0)
    assert pk.pallas_call(kernel, out(4))(X).tolist() == [0, 3, 6, 9]
    other, _ = make()
    assert pk.pallas_call(other, out(4))(X).tolist() == [0, 2, 4, 6]


def test_stored_calls_keep_no_arrays():
    def kernel(x, o):
        o[...] = x[...] * 2

    def call(x):
        return pk.pallas_call(kernel, x)(x)

    x = device_put(np.arange(3, dtype=F32))
    alive = weakref.ref(x)
    assert call(x).tolist() == [0, 2, 4] and call(X).tolist() == [0, 2, 4, 6]
    assert jit(call)(X).tolist() == [0, 2, 4, 6]
    del x
    gc.collect()
    assert alive() is None


def test_options_of_tracing_count():
    def kernel(x, o):
        o[...] = lax.dot(x[...], x[...])

    call = pk.pallas_call(kernel, ShapeDtypeStruct((4, 4), F32))
    text = str(make_jaxpr(call)(np.eye(4, dtype=F32)).eqns[0].params["kernel"].jaxpr)
    with default_matmul_precision("highest"):
        precise = make_jaxpr(call)(np.eye(4, dtype=F32)).eqns[0].params["kernel"].jaxpr
    assert "HIGHEST" not in text and "HIGHEST" in str(precise)


@pytest.mark.parametrize("name", list(CASES))
def test_kernels_are_equal_by_content(name):
    case = CASES[name]

    def kernel_of(*args):
        clear_caches()  # kernels of equal contents are one object otherwise
        (eqn,) = make_jaxpr(case.call)(*args).eqns
        return eqn.params["kernel"]

    args = operands(case)
    a, b = kernel_of(*args), kernel_of(*args)
    assert a is not b and a == b and hash(a) == hash(b)
    assert grid.plan_of(b) is grid.plan_of(a)
    assert all(x == y for x, y in zip(a.inputs, b.inputs))
    other = make_jaxpr(lambda *xs: case.call(*[lax.mul(x, x) for x in xs]))(*args).eqns[-1]
    assert other.params["kernel"] is b  # what is known is found again


def test_constants_count_by_their_bits():
    def kernel_of(value):
        (eqn,) = make_jaxpr(scaled(value))(X).eqns
        return eqn.params["kernel"]

    assert kernel_of(2.0) == kernel_of(2.0) != kernel_of(3.0)
    assert kernel_of(0.0) != kernel_of(-0.0)
    assert kernel_of(float("nan")) == kernel_of(float("nan"))


def test_calls_that_step_are_not_shared():
    assert isinstance(scaled(2.0), _KernelCall)
    assert scaled(2.0, interpret="python") is not scaled(2.0, interpret="python")
    assert scaled(2.0) is scaled(2.0)
