"""Kernels of values and tangents, whose texts are compared with derivatives on a CPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from primax_core import dtypes, jvp, make_jaxpr
from primax_kernels._derivatives import JvpKernel
from primax_kernels._primitive import pallas_call_p


def is_float(x: Any) -> bool:
    return bool(dtypes.issubdtype(np.asarray(x).dtype, np.inexact))


def with_tangents(
    call: Callable[..., Sequence[Any]], args: Sequence[Any]
) -> tuple[Callable[..., tuple[list[Any], list[Any]]], list[Any]]:
    """The derivative of a call as a function of its operands and their tangents, and these."""
    rng = np.random.default_rng(5)
    floats = [x for x in args if is_float(x)]
    tangents = [rng.standard_normal(np.shape(x)).astype(np.asarray(x).dtype) for x in floats]

    def derivative(*xs: Any) -> tuple[list[Any], list[Any]]:
        n = len(floats)

        def of_floats(*values: Any) -> Sequence[Any]:
            remaining = iter(values)
            return call(*(next(remaining) if is_float(x) else x for x in args))

        outs, dots = jvp(of_floats, xs[:n], xs[n:])
        return [*outs] if isinstance(outs, (list, tuple)) else [outs], (
            [*dots] if isinstance(dots, (list, tuple)) else [dots]
        )

    return derivative, [*floats, *tangents]


def compare(
    call: Callable[..., Any], args: Sequence[Any], emit: Callable[..., Any],
    evaluate: Callable[..., Any], tolerance: float,
) -> JvpKernel:  # fmt: skip
    """Check the values and tangents of a kernel's text; elements that no step writes are not."""
    derivative, operands = with_tangents(call, args)
    (kernel,) = [
        e.params["kernel"]
        for e in make_jaxpr(derivative)(*operands).eqns
        if e.primitive is pallas_call_p
    ]
    assert isinstance(kernel, JvpKernel)
    tangents = operands[len(operands) // 2 :]
    results = evaluate(emit(kernel), kernel, [*args, *tangents])
    outs, dots = (list(map(np.asarray, xs)) for xs in derivative(*operands))
    expected = [*outs, *(t for x, t in zip(outs, dots) if is_float(x))]
    primals = [*outs, *(x for x in outs if is_float(x))]
    for result, reference, primal in zip(results, expected, primals, strict=True):
        result, reference = (np.asarray(x, np.float64) for x in (result, reference))
        written = np.isfinite(np.asarray(primal, np.float64))
        scale = np.abs(reference[written & np.isfinite(reference)]).max(initial=1)
        np.testing.assert_allclose(
            result[written], reference[written], rtol=tolerance, atol=tolerance * scale
        )
    return kernel
