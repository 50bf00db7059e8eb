"""Barriers, composites, stacks, patches, sinks, guards and other functions against the
reference.
"""

from __future__ import annotations

import re

import ml_dtypes
import numpy as np
import pytest

jax = pytest.importorskip("jax")
pytest.importorskip("jax.ad_checkpoint")

from agreement import check, same, same_text, values  # noqa: E402
from api_sides import OURS, THEIRS, same_error, same_results  # noqa: E402

import primax  # noqa: E402
import primax_core as px  # noqa: E402
from primax_core import ad_checkpoint, lax  # noqa: E402
from primax_core.lax import composite, conv_patches, identities, shape_dtype, stacking  # noqa: E402
from primax_core.lax.barrier import optimization_barrier  # noqa: E402

F32 = np.float32
X = np.array([1.0, 2.0], F32)
X23 = np.arange(6, dtype=F32).reshape(2, 3)


def test_barriers():
    def case(barrier):
        return lambda x: barrier((x, {"a": x * 2, "b": None}))[1]["a"]

    check(case(optimization_barrier), case(jax.lax.optimization_barrier), X23)


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_stacks(axis):
    check(
        lambda x, y: stacking.stack([x, y, x], axis),
        lambda x, y: jax.lax.stack([x, y, x], axis),
        X23,
        X23 + 1,
    )


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_unstacks(axis):
    # Cotangents of unused slices are literals there, so printed jaxprs differ.
    check(
        lambda x: stacking.unstack(x, axis), lambda x: jax.lax.unstack(x, axis), X23, backward=False
    )


BAD_STACKS = {
    "shapes": lambda L: L.stack([X, X[:1]]),
    "axis": lambda L: L.stack([X, X], 3),
    "unstack axis": lambda L: L.unstack(X, 1),
    "unstack scalar": lambda L: L.unstack(F32(1)),
}


@pytest.mark.parametrize("case", BAD_STACKS)
def test_invalid_stacks(case):
    same_error(
        lambda J: BAD_STACKS[case](stacking if J is OURS else J.lax), ValueError,
        ("Got (2,), (1,)",) if case == "shapes" else ("is out of bounds for array of dimension",),
    )  # fmt: skip


def tangent(L):
    def f(x, *, scale=1.0, names=None, table=None):
        return L.sin(x) / L.cos(x)

    return f


ATTRIBUTES = [
    {"scale": F32(2)},
    {"scale": 3, "names": ("a", "b")},
    {"names": {"a": 1, "b": True}},
    {"table": np.arange(3, dtype=np.int32)},
    {"names": ()},
    {"scale": np.int8(3), "names": "x"},
    {"names": None},
]


@pytest.mark.parametrize("attributes", ATTRIBUTES, ids=str)
def test_lowering_of_composites(attributes):
    texts = []
    for library, make in ((px, composite), (jax, jax.lax.composite)):
        f = make(tangent(library.lax), "my.tangent", version=3)
        text = library.jit(lambda x, f=f: f(x, **attributes)).lower(X).as_text()
        texts.append(re.search(r"stablehlo.composite.*", text)[0])
        same(library.jit(f)(X), np.asarray(jax.jit(tangent(jax.lax))(X)))
    assert texts[0] == texts[1]


def of_composite(J, *args, **options):
    return (composite if J is OURS else J.lax.composite)(*args, **options)


COMPOSITE_ERRORS = {
    "attribute": (lambda J: J.jit(lambda x: of_composite(J, tangent(J.lax), "a.b")(
        x, scale=x))(X), "UnexpectedTracerError",
        "Found a JAX Tracer as an attribute in the decomposition for the composite op 'a.b'"),
    "grad": (lambda J: J.grad(lambda x: J.lax.reduce_sum(
        of_composite(J, tangent(J.lax), "a.b")(x), (0,)))(X), ValueError,
        "JVP rule for composite not implemented. You can use `jax.custom_jvp` to add support"),
    "kind": (lambda J: J.jit(lambda x: of_composite(J, tangent(J.lax), "a.b")(
        x, names=object()))(X), TypeError, "No attribute handler defined for type"),
    "name": (lambda J: J.jit(lambda x: of_composite(J, tangent(J.lax), "ab")(x))(X), ValueError,
             "name must be a valid namespaced op name"),
}  # fmt: skip


@pytest.mark.parametrize("case", COMPOSITE_ERRORS)
def test_composite_errors(case):
    call, error, phrase = COMPOSITE_ERRORS[case]
    same_error(call, error, (phrase,))


IMAGE = values((2, 3, 5, 6), F32, 1)


@pytest.mark.parametrize("layout", [None, ("NHWC", "HWIO", "NHWC"), ("NCHW", "OIHW", "NHWC")])
@pytest.mark.parametrize("padding", ["SAME", "VALID", [(0, 1), (1, 0)]], ids=str)
@pytest.mark.parametrize("dilation", [None, (1, 2)])
def test_patches(layout, padding, dilation):
    image = IMAGE.transpose(0, 2, 3, 1) if layout and layout[0] == "NHWC" else IMAGE
    args, options = ((2, 3), (1, 2), padding), {
        "dimension_numbers": layout, "rhs_dilation": dilation,
    }  # fmt: skip
    ours = conv_patches.conv_general_dilated_patches(image, *args, **options)
    theirs = jax.lax.conv_general_dilated_patches(image, *args, **options)
    same(ours, theirs)
    rows, columns = theirs.shape[1:3] if layout else theirs.shape[2:]
    shape = (rows, columns, 18, 4) if layout and layout[1] == "HWIO" else (4, 18, rows, columns)
    kernels = values(shape, F32, 2)
    local = (1, 2), padding, (2, 3)
    f = lambda x, k: conv_patches.conv_general_dilated_local(x, k, *local, **options)
    g = lambda x, k: jax.lax.conv_general_dilated_local(x, k, *local, **options)
    expected = g(image, kernels)
    same(f(image, kernels), expected, rtol=1e-4)
    ct = values(expected.shape, F32, 3)
    same(px.vjp(f, image, kernels)[1](ct), jax.vjp(g, image, kernels)[1](ct), rtol=1e-4)


def test_copies_stages_and_sinks():
    check(identities.copy_p.bind, jax.lax.copy_p.bind, X23)
    check(identities.stage, jax.lax.stage, X23)
    for keep in (False, True):

        def sunk(L, keep=keep):
            return lambda x: (L.dce_sink(x * 2, prevent_mlir_dce=keep), x * 3)[1]

        same_text(px.make_jaxpr(sunk(identities))(X), jax.make_jaxpr(sunk(jax.lax))(X))
        same(px.jit(sunk(identities))(X), jax.jit(sunk(jax.lax))(X))
        same(px.vmap(sunk(identities))(X), jax.vmap(sunk(jax.lax))(X))


@pytest.mark.parametrize(
    "value", [1, 1.0, True, 1j, X, np.float64(1), np.arange(3), F32, float, "int8"], ids=str
)
def test_dtype(value):
    assert shape_dtype.dtype(value) == jax.lax.dtype(value)


@pytest.mark.parametrize(
    ("value", "error"), [([1], TypeError), ("foo", TypeError), (None, ValueError)]
)
def test_invalid_dtype(value, error):
    for f in (shape_dtype.dtype, jax.lax.dtype):
        with pytest.raises(error):
            f(value)


@pytest.mark.parametrize("shape", [(2, 3), (), [2, np.int32(3)]], ids=str)
def test_shapes_as_values(shape):
    same(shape_dtype.shape_as_value(shape), jax.lax.shape_as_value(shape))


@pytest.mark.parametrize("to", ["varying", "reduced", "invarying"])
def test_gathered_values(to):
    f = lambda L: lambda x: L.all_gather(x, "i", to=to, axis=1, tiled=True)
    x = values((3, 2, 2), F32)
    same(px.vmap(f(px.lax), axis_name="i")(x), jax.vmap(f(jax.lax), axis_name="i")(x))


def test_top_k_is_a_list():
    for L in (lax, jax.lax):
        assert type(L.top_k(X, 1)) is list


@pytest.mark.parametrize("preset", [p.name for p in jax.lax.DotAlgorithmPreset])
def test_dot_algorithms(preset):
    for dtype in (F32, np.float16, ml_dtypes.bfloat16, np.int32, ml_dtypes.float8_e4m3fn):
        x = np.array([[1, 2.5], [3, 4]]).astype(dtype)
        for preferred in (None, F32, np.float16):
            results = []
            for L in (lax, jax.lax):
                try:
                    out = L.dot_general(
                        x, x, (((1,), (0,)), ((), ())), precision=L.DotAlgorithmPreset[preset],
                        preferred_element_type=preferred,
                    )  # fmt: skip
                    results.append((out.dtype, np.asarray(out).astype(F32).tolist()))
                except Exception as e:
                    results.append(type(e))
            assert results[0] == results[1], (dtype, preferred, results)


SUMS = [np.bool_, np.int8, np.int32, np.uint8, np.uint32, np.float16, ml_dtypes.bfloat16, F32,
        np.complex64, ml_dtypes.float8_e4m3fn]  # fmt: skip


@pytest.mark.parametrize("dtype", SUMS)
def test_invalid_preferred_dtypes(dtype):
    x, image, kernel = np.ones((2, 2), dtype), np.ones((1, 1, 3), dtype), np.ones((1, 1, 2), dtype)
    for preferred in SUMS:
        for call in (
            lambda L, p=preferred: L.dot(x, x, preferred_element_type=p),
            lambda L, p=preferred: L.conv(image, kernel, (1,), "VALID", preferred_element_type=p),
        ):
            results = []
            for L in (lax, jax.lax):
                try:
                    results.append(call(L).dtype)
                except TypeError as e:
                    results.append(str(e).split(",")[0].split(". ")[0][:60])
            assert results[0] == results[1], (preferred, results)


def test_reductions_of_several_operands():
    def arg_max(L):
        def combine(a, b):
            first = a[0] >= b[0]
            return L.select(first, a[0], b[0]), L.select(first, a[1], b[1])

        return lambda x, k: L.reduce((x, k), (F32(-np.inf), np.int32(-1)), combine, (1,))

    x, k = values((3, 4), F32), values((3, 4), np.int32)
    check(arg_max(lax), arg_max(jax.lax), x, k, diff=False, text=False)


def test_reductions_over_no_axes():
    for fun in ("add", "mul", "max"):
        f = lambda L, fun=fun: lambda x: L.reduce(x, F32(2), getattr(L, fun), ())
        same(f(lax)(X23), f(jax.lax)(X23))
        same(px.jvp(f(lax), (X23,), (X23,)), jax.jvp(f(jax.lax), (X23,), (X23,)))


def test_reduce_precision_tangents():
    f = lambda L: lambda x: L.reduce_precision(x, 5, 3)
    check(f(lax), f(jax.lax), values((3,), F32))


def test_named_values():
    for name in ("checkpoint_name", "checkpoint_name_fwd"):
        f = lambda module, name=name: lambda x: getattr(module, name)(x, "a") * 2
        check(f(ad_checkpoint), f(jax.ad_checkpoint), X)


# Guards


def guarded(J, library, name, level, call):
    with getattr(library, name)(level):
        return call(J)


GUARDED = {
    "array": lambda J: J.lax.sin(X),
    "number": lambda J: J.jit(lambda x: x)(1.5),
    "put": lambda J: J.device_put(X),
}


@pytest.mark.parametrize("level", ["allow", "log", "disallow", "log_explicit", "disallow_explicit"])
@pytest.mark.parametrize("name", ["transfer_guard", "transfer_guard_host_to_device",
                                  "transfer_guard_device_to_host"])  # fmt: skip
def test_transfer_guards(name, level):
    for call in GUARDED.values():
        outcomes = []
        for J, library in ((OURS, px), (THEIRS, jax)):
            call(J)
            try:
                guarded(J, library, name, level, call)
                outcomes.append("allowed")
            except Exception as e:
                outcomes.append(str(e).split(":")[1])
        assert outcomes[0] == outcomes[1]


@pytest.mark.parametrize("option", ["no_tracing", "no_execution"])
def test_invalid_strides(option):
    def case(J):
        library = px if J is OURS else jax
        with getattr(library, option)(True):
            return J.jit(lambda x: x * 2)(J.array(X))

    phrase = "but 'no_tracing' is set" if option == "no_tracing" else "but the no_execution config"
    same_error(case, RuntimeError, (phrase,))


def test_user_contexts():
    def case(J):
        library = px if J is OURS else jax
        context, traced = library.make_user_context(default_value=3), []

        @J.jit
        def f(x):
            traced.append(context.value)
            return x + context.value

        results = [f(1.0)]
        for value in (5, 5, 3):
            with context(value):
                results.append(f(1.0))
        return results, len(traced)

    same_results(case)


def test_inline():
    assert [primax.Inline[m.name] for m in jax.Inline] == list(px.Inline)
    for ours, theirs in zip(px.Inline, jax.Inline):
        results = []
        for library, how in ((px, ours), (jax, theirs)):
            f = library.jit(lambda x, lib=library, how=how: lib.jit(lambda x: x + 1, inline=how)(x))
            text = f.lower(1.0).as_text()
            results.append(("call @" in text, re.findall(r"inlineable = \"\w+\"", text)))
        assert results[0] == results[1]


@pytest.mark.parametrize("args", [(1, 2), (3,), (None, 2), (None,), (1, 2, 4)], ids=str)
def test_slices(args):
    ours, theirs = px.ds(*args), jax.ds(*args)
    assert repr(ours) == repr(theirs)
