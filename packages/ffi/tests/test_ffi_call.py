"""Calls of native functions: results, attributes, layouts, aliases, effects, transformations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ffi_library import logged, registered

from primax_core import (
    ShapeDtypeStruct,
    checkpoint,
    custom_jvp,
    custom_vjp,
    effects_barrier,
    enable_x64,
    export,
    grad,
    jacfwd,
    jit,
    jvp,
    lax,
    make_jaxpr,
    vmap,
)
from primax_core.errors import JaxRuntimeError
from primax_core.layout import Layout
from primax_ffi import abstract_token, ffi_call

S = ShapeDtypeStruct
F32 = np.dtype(np.float32)
X = np.arange(6, dtype=np.float32).reshape(2, 3)
ROW = np.float32([1, 2, 3])


def scale(x: Any, by: float = 3, fail: str = "", **options: Any) -> Any:
    call = ffi_call(registered("acme_scale"), S(x.shape, F32), **options)
    return call(x, by=np.float32(by), fail=fail)


def first(x: Any) -> Any:
    return lax.index_in_dim(x, 0, keepdims=False)


def sum_and_product(x: Any, y: Any, method: Any = None) -> Any:
    shape = max(x.shape, y.shape, key=len)
    types = [S(shape, F32), S(shape, F32)]
    return ffi_call(registered("acme_sum_and_product"), types, vmap_method=method)(x, y)


def test_eagerly_and_in_compiled_functions():
    assert np.asarray(scale(X)).tolist() == (3 * X).tolist()
    assert np.asarray(jit(lambda x: scale(x) + 1.0)(X)).tolist() == (3 * X + 1).tolist()
    outs = jit(sum_and_product)(X, X)
    assert type(outs) is list and np.asarray(outs[1]).tolist() == (X * X).tolist()
    assert ffi_call(registered("acme_note"), ())(ROW) == []


def test_text_of_a_jaxpr():
    text = str(make_jaxpr(scale)(ROW))
    assert "target_name=acme_scale" in text and "attributes=(('by', np.float32(3.0))" in text
    assert "vmap_method" not in text and "has_side_effect" not in text


def test_python_numbers_are_operands():
    out = ffi_call(registered("acme_describe"), S((2,), np.int32))
    assert np.asarray(out(2.0)).tolist() == [11, 4]
    assert np.asarray(out(True)).tolist() == [1, 1]


@pytest.mark.parametrize(
    ("dtype", "number"),
    [("int4", 21), ("uint4", 22), ("int8", 2), ("uint16", 7), ("bfloat16", 16), ("float16", 10),
     ("float8_e4m3fn", 20), ("complex64", 15), ("bool", 1)],
)  # fmt: skip
def test_dtypes(dtype, number):
    x = lax.convert_element_type(np.arange(5), np.dtype(dtype))
    out = np.asarray(ffi_call(registered("acme_memory"), S((5,), x.dtype))(x))
    assert out.astype(np.complex64).tolist() == np.asarray(x).astype(np.complex64).tolist()
    described = ffi_call(registered("acme_describe"), S((2,), np.int32))(x)
    assert np.asarray(described)[0] == number


def test_64_bits():
    with enable_x64(True):
        x = np.float64([1, 2])
        out = ffi_call(registered("acme_memory"), S((2,), np.float64))(x)
        assert out.dtype == np.float64 and np.asarray(out).tolist() == [1, 2]


# Attributes


def attributes(**changes: Any) -> Any:
    kinds = {
        "flag": True, "i": 2**40, "narrow": np.int32(-7), "x": 0.5, "text": "naïve",
        "axes": [3, 4, 5], "weights": np.float32([0.25, 1]), "inner": {"depth": 9},
    }  # fmt: skip
    call = ffi_call(registered("acme_attributes"), S((8,), np.float64))
    return call(**{**kinds, **changes})


def test_attributes_of_every_kind():
    expected = [1, 2**40, -7, 0.5, 6, 3, 0.25, 9]
    with enable_x64(True):
        assert np.asarray(attributes()).tolist() == expected
        assert np.asarray(jit(attributes)()).tolist() == expected


def test_equal_numbers_are_different_attributes():
    call = ffi_call("acme_any", S((), F32))
    texts = set()
    for value in (1, True, 1.0, np.int32(1), np.float32(1), [1], [True], np.int32([1])):
        text = str(jit(lambda: call(a=value)).trace().jaxpr.eqns[0].params["attributes"])  # noqa: B023
        texts.add(text)
    jaxprs = [make_jaxpr(lambda v=v: call(a=v))() for v in (0.0, -0.0)]
    one, other = (j.eqns[0].params["attributes"] for j in jaxprs)
    assert one != other and hash(one) != hash(other)
    assert len({make_jaxpr(lambda v=v: call(a=v))().eqns[0].params["attributes"]
                for v in (1, True, 1.0, np.int32(1), np.float32(1))}) == 5  # fmt: skip
    assert len(texts) == 8


def test_wrong_attributes_are_named_when_the_program_runs():
    with (
        enable_x64(True),
        pytest.raises(JaxRuntimeError, match="Wrong scalar data type: expected S32 but got S64"),
    ):
        np.asarray(attributes(narrow=1))


# Layouts and aliases


@pytest.mark.parametrize("order", [(1, 0), Layout((1, 0))])
def test_layouts(order):
    memory = registered("acme_memory")
    out = ffi_call(memory, S((6,), F32), input_layouts=[order])(X)
    assert np.asarray(out).tolist() == X.T.ravel().tolist()
    out = ffi_call(memory, S((3, 2), F32), output_layouts=order)(X)
    assert np.asarray(out).tolist() == X.ravel().reshape(2, 3).T.tolist()
    (out,) = ffi_call(memory, [S((3, 2), F32)], output_layouts=[order])(X)
    assert np.asarray(out).tolist() == X.ravel().reshape(2, 3).T.tolist()


def test_the_slowest_axis_is_first():
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    out = ffi_call(registered("acme_memory"), S((24,), F32), input_layouts=[(1, 2, 0)])(x)
    assert np.asarray(out).tolist() == x.transpose(1, 2, 0).ravel().tolist()
    text = jit(ffi_call("acme_memory", S((24,), F32), input_layouts=[(1, 2, 0)])).lower(x).as_text()
    assert "operand_layouts = [dense<[0, 2, 1]>" in text


def increment(x: Any, aliases: Any = None, method: Any = None) -> Any:
    types = [S(x.shape, F32), S((1,), np.int32)]
    return ffi_call(
        registered("acme_increment"), types, input_output_aliases=aliases, vmap_method=method
    )(x)


def test_results_in_the_memory_of_operands():
    assert np.asarray(increment(ROW)[1]).tolist() == [0]
    out, same = jit(lambda x: increment(x * 2.0, {0: 0}))(ROW)
    assert np.asarray(out).tolist() == [3, 5, 7] and np.asarray(same).tolist() == [1]
    x = lax.add(ROW, 0.0)
    out, _ = increment(x, {0: 0})
    assert np.asarray(x).tolist() == [1, 2, 3] and np.asarray(out).tolist() == [2, 3, 4]


# Side effects


def test_calls_with_side_effects_are_kept():
    note = ffi_call(registered("acme_note"), (), has_side_effect=True)
    dropped = ffi_call("acme_note", ())

    @jit
    def f(x):
        note(x)
        dropped(x)
        return x

    logged()
    f(np.float32([5])).block_until_ready()
    effects_barrier()
    assert logged() == [5]


def test_ordered_calls():
    note = ffi_call(registered("acme_note_in_order"), (), ordered=True)

    @jit
    def f(x):
        for v in (-1, 2, -3, 4):
            note(lax.mul(x, np.float32(v)))
        return lax.fori_loop(0, 2, lambda i, x: (note(x + 5.0), x)[1], x)

    logged()
    f(np.float32([1])).block_until_ready()
    note(np.float32([7]))
    effects_barrier()
    assert logged() == [-1, 2, -3, 4, 6, 6, 7]


def test_tokens_of_the_caller():
    call = ffi_call(registered("acme_note_in_order"), abstract_token, has_side_effect=True)

    def f(x):
        token = lax.create_token()
        for v in (-1, 2, -3):
            token = call(token, x * np.float32(v))
        return lax.after_all(token), x

    logged()
    jit(f)(np.float32([1]))[1].block_until_ready()
    effects_barrier()
    assert logged() == [-1, 2, -3]
    f(np.float32([4]))
    assert logged() == [-4, 8, -12]
    token = jit(lambda x: call(lax.create_token(), x))(np.float32([1]))
    jit(call)(token, np.float32([2]))
    effects_barrier()
    assert logged() == [1, 2]


def test_tokens_from_outside_of_a_loop():
    call = ffi_call(registered("acme_note_in_order"), abstract_token, has_side_effect=True)

    def f(x):
        return lax.fori_loop(0, 2, lambda i, token: call(token, x), lax.create_token())

    with pytest.raises(NotImplementedError, match=r"outside of the loop.* use ordered=True"):
        jit(f)(np.float32([1]))


# vmap

METHODS = ("sequential", "sequential_unrolled", "expand_dims", "broadcast_all")


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("axis", [0, 1])
def test_vmap(method, axis):
    mapped = vmap(lambda x: scale(x, vmap_method=method), axis, axis)
    assert np.asarray(mapped(X)).tolist() == (3 * X).tolist()
    assert np.asarray(jit(vmap(mapped))(X[None])).tolist() == [(3 * X).tolist()]
    assert np.asarray(mapped(X[:0] if axis == 0 else X[:, :0])).size == 0


@pytest.mark.parametrize("method", [*METHODS, "legacy_vectorized"])
def test_vmap_with_an_operand_that_is_the_same_for_all(method):
    f = vmap(lambda x, y: sum_and_product(x, y, method), (0, None))
    total, product = jit(f)(X, ROW)
    assert np.asarray(total).tolist() == (X + ROW).tolist()
    assert np.asarray(product).tolist() == (X * ROW).tolist()
    types = {
        "expand_dims": "f32[1,3]", "broadcast_all": "f32[2,3]", "legacy_vectorized": "f32[3]"
    }  # fmt: skip
    if method in types:
        call = make_jaxpr(f)(X, ROW).eqns[-1]
        assert str(call.invars[1].aval) == types[method].replace("f32", "float32")


def test_vmap_by_a_function():
    seen = []

    def method(size, in_batched, x, *, by, fail):
        seen.append((size, in_batched, by, fail))
        return lax.mul(x, by), True

    out = vmap(lambda x: scale(x, vmap_method=method))(X)
    assert np.asarray(out).tolist() == (3 * X).tolist() and seen == [(2, [True], 3, "")]
    unmapped = vmap(lambda x: scale(x, vmap_method=lambda n, mask, x, **_: (first(x), False)))
    assert np.asarray(unmapped(X)).tolist() == [X[0].tolist()] * 2


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (lambda x: x, "must return the results and whether they have a leading axis"),
        (lambda x: ([x, x], True), "returned 2 results and 1 marks, but the function has 1"),
        (
            lambda x: (x, False),
            r"returned float32\[2,3\] as result 0, but float32\[3\] is expected",
        ),
    ],
)
def test_vmap_by_a_function_that_does_not_fit(returned, message):
    method = lambda n, mask, x, **_: returned(x)
    with pytest.raises(TypeError, match=message):
        vmap(lambda x: scale(x, vmap_method=method))(X)


@pytest.mark.parametrize("method", METHODS)
def test_vmap_of_aliases_and_layouts(method):
    out, _ = jit(vmap(lambda x: increment(x, {0: 0}, method)))(X)
    assert np.asarray(out).tolist() == (X + 1).tolist()

    def transposed(x):
        call = ffi_call(
            registered("acme_memory"), S((3, 2), F32), output_layouts=(1, 0), vmap_method=method
        )
        return call(x)

    stacked = np.stack([X, X + 6])
    expected = np.stack([x.ravel().reshape(2, 3).T for x in stacked])
    assert np.asarray(vmap(transposed)(stacked)).tolist() == expected.tolist()


def test_an_alias_of_an_operand_that_is_the_same_for_all():
    def pair(x, y, method):
        call = ffi_call(
            registered("acme_sum_and_product"), [S((3,), F32), S((3,), F32)],
            input_output_aliases={1: 0}, vmap_method=method,
        )  # fmt: skip
        return call(x, y)

    for method in ("sequential", "expand_dims"):
        total, _ = vmap(lambda x, y: pair(x, y, method), (0, None))(X, ROW)  # noqa: B023
        assert np.asarray(total).tolist() == (X + ROW).tolist()
    with pytest.raises(ValueError, match="the same for all examples: use vmap_method='expand_dims"):
        vmap(lambda x, y: pair(x, y, "legacy_vectorized"), (0, None))(X, ROW)


def test_vmap_without_a_method_and_of_ordered_calls():
    with pytest.raises(NotImplementedError, match="'acme_scale', whose call has no vmap_method"):
        vmap(scale)(X)
    ordered = ffi_call(registered("acme_note_in_order"), (), ordered=True, vmap_method="sequential")
    with pytest.raises(ValueError, match="examples of vmap have no order: use scan"):
        vmap(ordered)(X)


# Derivatives


def test_derivatives_are_refused_by_name():
    for derive in (
        lambda: jvp(scale, (ROW,), (ROW,)),
        lambda: grad(lambda x: scale(x).sum())(ROW),
        lambda: jacfwd(scale)(ROW),
    ):
        with pytest.raises(ValueError, match="'acme_scale' has no derivative"):
            derive()


def with_jvp(x):
    f = custom_jvp(lambda x: scale(x, vmap_method="broadcast_all"))
    f.defjvp(lambda primals, tangents: (f(*primals), lax.mul(tangents[0], np.float32(3))))
    return f(x)


def with_vjp(x):
    f = custom_vjp(lambda x: scale(x, vmap_method="broadcast_all"))
    f.defvjp(lambda x: (f(x), None), lambda _, g: (scale(g, vmap_method="broadcast_all"),))
    return f(x)


@pytest.mark.parametrize("f", [with_jvp, with_vjp])
def test_custom_derivatives(f):
    total = lambda x: lax.reduce_sum(f(x) * f(x), (0,))
    expected = (18 * ROW).tolist()
    assert np.asarray(grad(total)(ROW)).tolist() == expected
    assert np.asarray(jit(grad(checkpoint(total)))(ROW)).tolist() == expected
    assert np.asarray(vmap(grad(total))(np.stack([ROW] * 2))).tolist() == [expected] * 2

    def looped(x):
        return total(lax.fori_loop(0, 2, lambda i, x: f(x), x))

    assert np.asarray(grad(looped)(ROW)).tolist() == (1458 * ROW).tolist()
    plain = lambda x: lax.reduce_sum(x, (0,))
    chosen = lambda x: lax.cond(plain(x) > 0, total, plain, x)
    assert np.asarray(grad(chosen)(ROW)).tolist() == expected


# Programs


def test_in_scan_and_in_cond():
    _, outs = lax.scan(lambda c, x: (c, scale(x)), None, X)
    assert np.asarray(outs).tolist() == (3 * X).tolist()
    out = jit(lambda p, x: lax.cond(p, scale, lambda x: x, x))(True, ROW)
    assert np.asarray(out).tolist() == (3 * ROW).tolist()


def test_symbolic_shapes():
    (n,) = export.symbolic_shape("n")
    text = jit(scale).trace(S((n, 3), F32)).lower().as_text()
    assert "indices_of_shape_operands" in text and "tensor<?x3xf32>" in text


def test_errors_of_handlers():
    for how, text in (("error", "the pivot of column 3 is zero"), ("throw", "out of range")):
        with pytest.raises(JaxRuntimeError, match=text):
            np.asarray(scale(ROW, fail=how))
    with pytest.raises(JaxRuntimeError, match="INVALID_ARGUMENT"):
        np.asarray(ffi_call(registered("acme_memory"), S((3,), F32))(ROW, ROW))
