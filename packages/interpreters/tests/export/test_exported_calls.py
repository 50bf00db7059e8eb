"""Calls of exported functions: under transformations, and with mismatched arguments."""

from __future__ import annotations

import numpy as np
import pytest

import primax_core as pc
from primax_core import lax
from primax_interpreters import export
from primax_interpreters.export import DisabledSafetyCheck

X = np.arange(3, dtype=np.float32)


@pytest.fixture(scope="module")
def scaled() -> export.Exported:
    def f(x, options):
        return {"a": lax.sin(x) * options["k"], "b": [x]}

    return export.export(pc.jit(f))(X, {"k": 2.0})


def total(x):
    return lax.reduce_sum(x, tuple(range(pc.typeof(x).ndim)))


def test_eager_and_jitted(scaled) -> None:
    eager, jitted = scaled.call(X, {"k": 3.0}), pc.jit(scaled.call)(X, {"k": 3.0})
    for out in (eager, jitted):
        np.testing.assert_allclose(out["a"], np.sin(X) * 3, rtol=1e-6)
        np.testing.assert_array_equal(out["b"][0], X)


def test_two_calls_share_one_function(scaled) -> None:
    def f(x):
        return scaled.call(x, {"k": 1.0})["a"] + scaled.call(2 * x, {"k": 1.0})["a"]

    text = pc.jit(f).lower(X).as_text()
    assert text.count("func.func private @call_exported_main") == 1
    np.testing.assert_allclose(pc.jit(f)(X), np.sin(X) + np.sin(2 * X), rtol=1e-6)


def test_functions_of_one_name_are_distinct() -> None:
    def make(k):
        inner = pc.jit(lambda x: x * k)
        return export.export(pc.jit(lambda x: inner(inner(x))))(X)

    two, three = make(2), make(3)
    np.testing.assert_array_equal(pc.jit(lambda x: two.call(x) + three.call(x))(X), 13 * X)


@pytest.mark.parametrize(
    ("args", "match"),
    [
        ((np.ones(4, np.float32), {"k": 1.0}), r"Shape mismatch for args\[0\]\.shape\[0\]"),
        ((np.ones(3, np.int32), {"k": 1.0}), r"Dtype mismatch for args\[0\]: expected float32 and"),
        ((np.ones((3, 1), np.float32), {"k": 1.0}), r"Rank mismatch for args\[0\]"),
        ((X, {"k": 1}), r"Dtype mismatch for args\[1\]\['k'\]"),
        (
            (X, {"q": 1.0}),
            r"(?s)same pytree structure.*args\[1\] is a .*keys of only one.*'k', 'q'",
        ),
        ((X,), r"(?s)same pytree structure.*args is a .*the numbers of children do not match"),
    ],
)
def test_mismatched_arguments(scaled, args, match) -> None:
    for call in (scaled.call, pc.jit(scaled.call)):
        with pytest.raises(ValueError, match=match):
            call(*args)


def test_arguments_that_are_not_arrays(scaled) -> None:
    with pytest.raises(TypeError, match="not a valid Primax type"):
        scaled.call("text", {"k": 1.0})


# Derivatives


def test_gradient(scaled) -> None:
    g = pc.grad(lambda x: total(scaled.call(x, {"k": 2.0})["a"]))
    for f in (g, pc.jit(g)):
        np.testing.assert_allclose(f(X), 2 * np.cos(X), rtol=1e-6)


def test_second_gradient(scaled) -> None:
    def f(x):
        return total(scaled.call(x, {"k": 2.0})["a"])

    g = pc.grad(lambda x: total(pc.grad(f)(x)))
    np.testing.assert_allclose(g(X), -2 * np.sin(X), rtol=1e-6)
    np.testing.assert_allclose(pc.jit(g)(X), -2 * np.sin(X), rtol=1e-6)


def test_vjp_is_an_exported_function(scaled) -> None:
    back = scaled.vjp()
    assert back is scaled.vjp()
    assert [a.str_short() for a in back.in_avals] == ["f32[3]", "f32[]", "f32[3]", "f32[3]"]
    assert [a.str_short() for a in back.out_avals] == ["f32[3]", "f32[]"]
    dx, dk = back.call(X, 2.0, np.ones(3, np.float32), np.zeros(3, np.float32))
    np.testing.assert_allclose(dx, 2 * np.cos(X), rtol=1e-6)
    np.testing.assert_allclose(dk, np.sin(X).sum(), rtol=1e-6)


def test_integers_have_no_derivatives() -> None:
    e = export.export(pc.jit(lambda x, i: (x * i, i)))(X, np.int32(3))
    back = e.vjp()
    assert [a.dtype for a in back.in_avals[2:]] == [np.float32, pc.float0]
    assert [a.dtype for a in back.out_avals] == [np.float32, pc.float0]
    g = pc.grad(lambda x: total(e.call(x, np.int32(3))[0]))
    np.testing.assert_array_equal(g(X), [3, 3, 3])


def test_values_without_information() -> None:
    e = export.export(pc.jit(lambda x, z: (x, z)))(X, np.zeros(2, pc.float0))
    out = e.call(X, np.zeros(2, pc.float0))
    assert out[1].dtype == pc.float0 and out[1].shape == (2,)


def test_without_derivative(scaled) -> None:
    plain = export.deserialize(scaled.serialize())
    assert not plain.has_vjp()
    with pytest.raises(ValueError, match="No VJP is available"):
        plain.vjp()
    with pytest.raises(ValueError, match="No VJP is available"):
        pc.grad(lambda x: total(plain.call(x, {"k": 2.0})["a"]))(X)


def test_forward_mode_and_vmap_raise(scaled) -> None:
    def f(x):
        return scaled.call(x, {"k": 2.0})["a"]

    with pytest.raises(TypeError, match="can't apply forward-mode"):
        pc.jvp(f, (X,), (X,))
    with pytest.raises(NotImplementedError, match="call_exported does not support vmap"):
        pc.vmap(f)(np.ones((2, 3), np.float32))


# Platforms and exports in exports


def test_other_platforms() -> None:
    e = export.export(pc.jit(lax.sin), platforms=["cuda", "tpu"])(X)
    with pytest.raises(
        ValueError, match=r"exported for platforms \('cuda', 'tpu'\) but it is used"
    ):
        e.call(X)
    with pytest.raises(ValueError, match="exported for platforms"):
        pc.jit(e.call)(X)
    anywhere = export.export(
        pc.jit(lax.sin), platforms=["cuda"], disabled_checks=[DisabledSafetyCheck.platform()]
    )(X)
    np.testing.assert_allclose(anywhere.call(X), np.sin(X), rtol=1e-6)


def test_nested() -> None:
    def f(x):
        return lax.platform_dependent(x, cpu=lax.sin, default=lax.cos)

    inner = export.export(pc.jit(f), platforms=["tpu", "cpu", "cuda"])(X)
    outer = export.export(pc.jit(lambda x: 2 * inner.call(x)), platforms=["cpu", "tpu"])(X)
    np.testing.assert_allclose(outer.call(X), 2 * np.sin(X), rtol=1e-6)
    again = export.deserialize(outer.serialize(vjp_order=1))
    np.testing.assert_allclose(pc.grad(lambda x: total(again.call(x)))(X), 2 * np.cos(X), rtol=1e-6)
    with pytest.raises(ValueError, match="used on rocm"):
        export.export(pc.jit(inner.call), platforms=["cpu", "rocm"])(X)


def test_names_do_not_clash() -> None:
    """The caller has functions of the same names as the exported module."""
    helper = pc.jit(lambda x: x + 1)
    e = export.export(pc.jit(lambda x: helper(helper(x))))(X)
    np.testing.assert_array_equal(pc.jit(lambda x: helper(e.call(helper(x))))(X), X + 4)


def test_names_of_nested_exported_functions_are_distinct() -> None:
    double = export.export(pc.jit(lambda x: x * 2))(X)
    twice = export.export(pc.jit(lambda x: double.call(x) + double.call(x + 1)))(X)
    thrice = export.export(pc.jit(lambda x: twice.call(double.call(x))))(X)
    deep = export.export(pc.jit(lambda x: thrice.call(twice.call(x) + 1) * double.call(x)))(X)
    np.testing.assert_array_equal(thrice.call(X), 8 * X + 2)
    np.testing.assert_array_equal(deep.call(X), (8 * (4 * X + 3) + 2) * 2 * X)
    again = export.deserialize(deep.serialize(vjp_order=1))
    np.testing.assert_array_equal(again.call(X), deep.call(X))
    np.testing.assert_array_equal(pc.grad(lambda x: total(again.call(x)))(X), 128 * X + 52)
