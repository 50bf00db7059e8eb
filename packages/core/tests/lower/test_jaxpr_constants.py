"""Closed-over arrays are arguments of the executable, each once, also in nested jaxprs."""

from __future__ import annotations

import numpy as np
import pytest

import primax_core as px
from primax_core import lax

LARGE = px.device_put(np.arange(100, dtype=np.float32))


def twice_nested(depth: int, innermost):
    """A function that calls the innermost one along ``2 ** depth`` paths."""
    f = px.jit(innermost)
    for _ in range(depth):
        f = px.jit(lambda x, g=f: g(x) * 0.5 + g(x) * 0.25)
    return f


def contracted(x):
    return lax.reduce_sum(x * LARGE, (0,))


def test_a_jaxpr_with_many_call_paths_is_lowered_once():
    text = twice_nested(14, contracted).lower(np.float32(1)).as_text()
    assert text.count("func.func") == 1 + 14
    assert text.count("stablehlo.multiply") == 1 + 2 * 14


def test_its_value():
    f = twice_nested(4, contracted)
    expected = 0.75**4 * float(np.sum(np.asarray(LARGE)))
    np.testing.assert_allclose(f(np.float32(1)), expected, rtol=1e-5)
    np.testing.assert_allclose(px.grad(f)(1.0), expected, rtol=1e-5)
    np.testing.assert_allclose(
        px.vmap(f)(np.arange(3, dtype=np.float32)), expected * np.arange(3), rtol=1e-5
    )


def scanned(x):
    inner = px.jit(lambda c: c + lax.reduce_sum(LARGE, (0,)))
    return lax.scan(lambda c, _: (inner(c), None), x, None, length=3)[0]


def chosen(x):
    inner = px.jit(lambda c: c + lax.reduce_sum(LARGE, (0,)))
    return lax.cond(x > 0, inner, lambda c: c, x)


def repeated(x):
    inner = px.jit(lambda c: c + lax.reduce_sum(LARGE, (0,)))
    return lax.while_loop(lambda c: c < 5000, lambda c: inner(c), x)


@pytest.mark.parametrize(
    ("fun", "expected"), [(scanned, 14851.0), (chosen, 4951.0), (repeated, 9901.0)]
)
def test_constants_under_control_flow_are_arguments(fun, expected):
    lowered = px.jit(fun).lower(np.float32(1))
    assert "tensor<100xf32>" in lowered.as_text().split("main(")[1].split("->")[0]
    assert "dense<" not in "".join(
        line for line in lowered.as_text().splitlines() if "tensor<100xf32>" in line
    )
    assert float(px.jit(fun)(np.float32(1))) == expected


def test_an_array_closed_over_twice_is_one_argument():
    f = px.jit(lambda x: x * LARGE + px.jit(lambda y: y + LARGE)(x))
    head = f.lower(np.float32(1)).as_text().split("main(")[1].split("->")[0]
    assert head.count("tensor<100xf32>") == 1
    np.testing.assert_array_equal(f(np.float32(2)), 3 * np.asarray(LARGE) + 2)
