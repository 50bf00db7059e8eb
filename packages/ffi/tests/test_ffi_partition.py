"""Calls that devices divide, in programs without a mesh; with one in ``integration_tests``."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ffi_library import library, registered

from primax_core import ShapeDtypeStruct as S, device_put, devices, jit, lax, make_jaxpr, vmap
from primax_core.extend.runtime import TiledSharding, Tiling
from primax_ffi import Signature, ffi_call, register_ffi_target

F32 = np.dtype(np.float32)
X = np.arange(24, dtype=np.float32).reshape(8, 3)
OTHERS = Tiling.along_mesh((4,), [(), (0,)])
ROWS = Tiling.along_mesh((4,), [(0,), ()])


def divided(x: Any, tiling: Any) -> Any:
    return device_put(x, TiledSharding(devices()[:4], tiling))


def scale(partition: str | None, shape: tuple[int, ...] = (8, 3)) -> Any:
    call = ffi_call(
        registered("acme_scale"), S(shape, F32), partition=partition, vmap_method="expand_dims"
    )
    return lambda x: call(x, by=np.float32(3), fail="")


def text_of(function: Any, *args: Any) -> str:
    return jit(function).lower(*args).compile().as_text()


@pytest.mark.parametrize("partition", ["batch", "b _ -> b _", "a b->a b", "... _ -> ... _"])
def test_rows(partition):
    x = divided(X, ROWS)
    assert "all-gather" in text_of(scale(None), x)
    text = text_of(scale(partition), x)
    assert "all-gather" not in text and "f32[2,3]" in text
    out = jit(scale(partition))(x)
    assert np.asarray(out).tolist() == (3 * X).tolist()
    assert out.sharding.shard_shape((8, 3)) == (2, 3)


def test_axes_that_stay_whole():
    x = divided(X.T.copy(), OTHERS)
    text = text_of(scale("b _ -> b _", (3, 8)), x)
    assert "all-gather" in text
    assert np.asarray(jit(scale("b _ -> b _", (3, 8)))(x)).tolist() == (3 * X.T).tolist()


def test_sizes_that_do_not_divide():
    call = scale("batch", (6, 3))
    out = jit(lambda x: call(lax.slice(x, (0, 0), (6, 3))) + 1)(divided(X, ROWS))
    assert np.asarray(out).tolist() == (3 * X[:6] + 1).tolist()


def test_in_the_function_of_a_reduction():
    """XLA would end the process."""
    for name, partition in (("ffi_call", None), ("divided_ffi_call", ", ->")):
        call = ffi_call("acme_f", S((), F32), partition=partition)
        with pytest.raises(NotImplementedError, match=f"cannot do {name} there"):
            jit(lambda x, call=call: lax.reduce(x, np.float32(0), call, (0,)))(X)


def test_on_one_device():
    assert np.asarray(jit(scale("batch"))(X)).tolist() == (3 * X).tolist()
    assert np.asarray(scale("batch")(X)).tolist() == (3 * X).tolist()
    assert "division=batch _ -> batch _" in str(make_jaxpr(scale("batch"))(X))


def test_mapped_axes():
    x = divided(np.stack([X] * 4), Tiling.along_mesh((4,), [(0,), (), ()]))
    mapped = vmap(scale("_ _ -> _ _"))
    assert "all-gather" not in text_of(mapped, x)
    assert np.asarray(jit(mapped)(x)).tolist() == (3 * np.stack([X] * 4)).tolist()
    assert "division=v0 _ _ -> v0 _ _" in str(make_jaxpr(mapped)(x))
    nested = str(make_jaxpr(vmap(mapped))(np.zeros((2, 4, 8, 3), F32)))
    assert "division=v1 v0 _ _ -> v1 v0 _ _" in nested
    call = ffi_call(
        registered("acme_sum_and_product"), [S((3,), F32)] * 2, partition="_, _ -> _, _",
        vmap_method="expand_dims",
    )  # fmt: skip
    text = str(make_jaxpr(vmap(call, (0, None)))(X, X[0]))
    assert "division=v0 _, _ _ -> v0 _, v0 _" in text


SIGNATURES = [
    (Signature(["f32[b n]", "f32[n]"], "f32[b n]"), "b _, _ -> b _"),
    (Signature(["f32[... n]", "f32[n]"], "f32[... n]"), "...0 _, _ -> ...0 _"),
    (Signature(["f32[b n]", "f32[n]"], ["f32[b n]", "f32[b]"]), "b _, _ -> b _, b"),
]


@pytest.mark.parametrize(("signature", "expected"), SIGNATURES)
def test_batches_of_signatures(signature, expected):
    from primax_ffi._partitioning import division

    avals = list(make_jaxpr(lambda *xs: xs)(X, X[0]).in_avals)
    own = division("f", "batch", signature, avals, signature.result_types("f", avals))
    assert str(own) == expected


X3, ROW = S((8, 3), F32), S((3,), F32)


@pytest.mark.parametrize(
    ("partition", "operands", "results", "text"),
    [
        (3, [X3], X3, "partition of 'acme_f' is 3"),
        ("rows", [X3], X3, "write 'batch', or the axes"),
        ("b _, _ -> b _", [X3], X3, "has 2 operands, but the call of 'acme_f' has 1"),
        ("b _ -> b _", [X3], [X3, X3], "has 1 results, but the call of 'acme_f' has 2"),
        ("b -> b", [X3], X3, "has 1 axes for operand 0"),
        ("b 3 -> b 3", [X3], X3, "has the axis '3'"),
        ("b ... -> b ...", [X3], X3, r"has the axis '...'"),
        ("b b -> b b", [S((3, 3), F32)], S((3, 3), F32), "a letter twice for operand 0"),
        ("b n, b -> b n", [X3, ROW], X3, "the letter b for axes of the sizes 8 and 3"),
        ("b n -> b", [X3], S((8,), F32), "the letter n, which not all results have"),
        ("b _ -> b _, _", [X3], [X3, ROW], "the letter b, which not all results have"),
        ("batch", [X3, ROW], X3, "do not have the same first axis: write a rule"),
        ("batch", [X3], S((), F32), "do not have the same first axis"),
    ],
)
def test_partitions_that_do_not_fit(partition, operands, results, text):
    with pytest.raises((TypeError, ValueError), match=text):
        make_jaxpr(ffi_call("acme_f", results, partition=partition))(*operands)


def test_batches_that_signatures_do_not_have():
    from primax_ffi._partitioning import division

    avals = list(make_jaxpr(lambda *xs: xs)(np.zeros((3, 3), F32)).in_avals)
    for results, text in (
        ("f32[3 n]", "neither ... nor one letter in front"),
        ("f32[]", "neither ... nor one letter in front"),
        (["f32[n]", "f32[m]"], "neither ... nor one letter in front"),
        ("f32[m n]", "the letter m is not in front in the type"),
    ):
        signature = Signature(["f32[n m]"], results)
        outs = signature.result_types("f", avals)
        with pytest.raises(ValueError, match=text):
            division("f", "batch", signature, avals, outs)


def test_calls_that_cannot_be_divided():
    with pytest.raises(ValueError, match="side effects, which happen on the first device"):
        ffi_call("acme_f", X3, partition="batch", has_side_effect=True)
    with pytest.raises(ValueError, match="side effects, which happen on the first device"):
        ffi_call("acme_f", X3, partition="batch", ordered=True)
    call = ffi_call("acme_f", X3, partition="batch", vmap_method="legacy_vectorized")
    two = ffi_call("acme_f", X3, partition="b _, _ _ -> b _", vmap_method="legacy_vectorized")
    assert "v0 b" not in str(make_jaxpr(call)(X))
    with pytest.raises(ValueError, match="use vmap_method='expand_dims' or 'broadcast_all'"):
        make_jaxpr(vmap(two, (0, None)))(np.stack([X, X]), X)


@pytest.mark.parametrize(
    ("signature", "partition", "message"),
    [
        ("f32[b n], f32[b n] -> f32[b n]", "b _, _ _ -> b _", "has b for axis 0 of operand 0 and _ "
         "for axis 0 of operand 1, but both have the size b in the signature"),
        ("f32[... n], f32[... n] -> f32[... n]", "_ _, a _ -> a _", r"both have the size \.\.\."),
        ("f32[8 n], f32[] -> f32[8 n]", "b _,  -> b _", "divides axis 0 of operand 0, which "
         "has the size 8"),
    ],
)  # fmt: skip
def test_parts_that_do_not_fit_the_signature(signature, partition, message):
    """Such parts would be read as arrays of other sizes, beyond their end."""
    name = f"acme_parts_{len(message)}"
    register_ffi_target(name, library().acme_scale, signature=signature)
    with pytest.raises(ValueError, match=message):
        ffi_call(name, partition=partition)(
            X, X if "b n" in signature or "..." in signature else 1.0
        )
