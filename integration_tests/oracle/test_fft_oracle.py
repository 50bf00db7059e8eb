"""Fourier transforms and approximate top elements against the real jax."""

import contextlib

import jax
import numpy as np
import pytest
from agreement import check, same, values
from jax import lax as theirs

import primax_core as px
from primax_core._base.config import enable_x64
from primax_core.lax.approximate import approx_max_k, approx_min_k
from primax_core.lax.fourier import FftType, fft

CASES = [
    ("FFT", (5,), (5,)), ("IFFT", (2, 3, 4), (3, 4)), ("RFFT", (2, 6), (6,)),
    ("RFFT", (3, 5), (3, 5)), ("RFFT", (2, 3, 4), (2, 3, 4)), ("IRFFT", (2, 4), (6,)),
    ("IRFFT", (3, 4), (3, 7)), ("IRFFT", (2, 3, 3), (2, 3, 4)),
]  # fmt: skip


def kinds(kind):
    return getattr(FftType, kind), getattr(theirs.FftType, kind)


@pytest.mark.parametrize("kind, shape, lengths", CASES)
def test_transforms(kind, shape, lengths):
    """Values, both derivatives and batches; the reference's jaxprs call a function of their own."""
    mine, reference = kinds(kind)
    x = values(shape, np.float32 if kind == "RFFT" else np.complex64)
    check(
        lambda x: fft(x, mine, lengths), lambda x: theirs.fft(x, reference, lengths), x,
        text=False, rtol=1e-4,
    )  # fmt: skip


@pytest.mark.parametrize("kind", ["FFT", "IFFT", "RFFT", "IRFFT"])
@pytest.mark.parametrize(
    "dtype", ["int32", "bool", "uint8", "float16", "bfloat16", "float32", "float64", "complex128"]
)
def test_dtypes(kind, dtype):
    x = values((4,), dtype)
    n = 6 if kind == "IRFFT" else 4
    with contextlib.ExitStack() as stack:
        if dtype in ("float64", "complex128"):
            stack.enter_context(enable_x64(True))
            stack.enter_context(jax.enable_x64(True))
        try:
            expected = theirs.fft(x, kind.lower(), (n,))
        except ValueError as e:
            with pytest.raises(ValueError) as actual:
                fft(x, kind.lower(), (n,))
            assert str(actual.value) == str(e)
        else:
            same(fft(x, kind.lower(), (n,)), expected, rtol=1e-5)


def test_weakly_typed_and_scalar_operands():
    same(fft(1j, "FFT", ()), theirs.fft(1j, "FFT", ()))
    x = np.ones((2, 3), np.float32)
    same(fft(x, "RFFT", ()), theirs.fft(x, "RFFT", ()))
    same(fft(x[:0], "FFT", (3,)), theirs.fft(x[:0], "FFT", (3,)))
    assert [(t.name, t.value, repr(t), str(t)) for t in FftType] == [
        (t.name, t.value, repr(t), str(t)) for t in theirs.FftType
    ]


@pytest.mark.parametrize(
    "kind, shape, lengths",
    [
        (0, (8,), (8,)), (None, (8,), (8,)), ("FFT", (8,), (8, 8)), ("FFT", (8,), (4,)),
        ("RFFT", (8,), (7,)), ("IRFFT", (2, 3, 4), (4, 6)), ("FFT", (), (1,)),
    ],
)  # fmt: skip
def test_errors(kind, shape, lengths):
    x = np.ones(shape, np.float32)
    with pytest.raises((TypeError, ValueError)) as expected:
        theirs.fft(x, kind, lengths)
    with pytest.raises(expected.type) as actual:
        fft(x, kind, lengths)
    assert str(actual.value) == str(expected.value)


def test_primitive_in_jaxprs():
    x = np.ones((2, 4), np.complex64)
    mine = px.make_jaxpr(lambda x: fft(x, "FFT", (4,)))(x)
    reference = jax.make_jaxpr(lambda x: theirs.fft(x, "FFT", (4,)))(x).eqns[0].params["jaxpr"]
    assert str(mine).split("let")[1].split("in")[0] == str(reference).split("let")[1].split("in")[0]


# Approximate top elements


@pytest.mark.parametrize("mine, reference", [("max", "max"), ("min", "min")])
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("aggregate", [True, False])
def test_top_elements(mine, reference, axis, aggregate):
    x = np.random.default_rng(0).permutation(12).reshape(3, 4).astype(np.float32)
    f = {"max": approx_max_k, "min": approx_min_k}[mine]
    g = getattr(theirs, f"approx_{reference}_k")
    options = {"k": 2, "reduction_dimension": axis, "aggregate_to_topk": aggregate}
    same(f(x, **options), g(x, **options))
    t = np.random.default_rng(1).standard_normal(x.shape).astype(np.float32)
    same(
        px.jvp(lambda x: f(x, **options)[0], (x,), (t,)),
        jax.jvp(lambda x: g(x, **options)[0], (x,), (t,)),
    )
    ct = np.asarray(g(x, **options)[0])
    same(
        px.vjp(lambda x: f(x, **options)[0], x)[1](ct),
        jax.vjp(lambda x: g(x, **options)[0], x)[1](ct),
    )
    batch = np.stack([x, -x], 1)
    same(
        px.vmap(lambda x: f(x, **options), 1)(batch), jax.vmap(lambda x: g(x, **options), 1)(batch)
    )


@pytest.mark.parametrize("n, k, recall, override", [
    (5000, 1, 0.95, -1), (5000, 16, 0.99, -1), (10000, 16, 0.99, 40000), (300, 3, 0.5, -1),
    (5000, 3, 1.0, -1),
])  # fmt: skip
def test_bin_counts(n, k, recall, override):
    options = {
        "k": k, "recall_target": recall, "reduction_input_size_override": override,
        "aggregate_to_topk": False,
    }  # fmt: skip
    for shape in ((n,), (2, n)):
        x = np.random.default_rng(0).permutation(np.prod(shape)).reshape(shape).astype(np.float32)
        mine = jax.tree.map(np.asarray, approx_max_k(x, **options))
        same(mine, jax.tree.map(np.asarray, theirs.approx_max_k(x, **options)))


@pytest.mark.parametrize("options", [{"k": 0}, {"k": 5}, {"k": -1}])
def test_top_k_errors(options):
    x = np.ones(3, np.float32)
    with pytest.raises(ValueError) as expected:
        theirs.approx_max_k(x, **options)
    with pytest.raises(ValueError) as actual:
        approx_max_k(x, **options)
    assert str(actual.value) == str(expected.value)
