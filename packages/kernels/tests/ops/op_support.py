"""Evaluation of functions whose kernels run in another way, and small operands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from primax_core import device_get, grad, lax, make_jaxpr
from primax_core.extend import Eqn, Jaxpr, expanded, interpret, walk
from primax_kernels import pallas_call_p
from primax_kernels._checking import check_steps
from primax_kernels._linear_calls import body_of_linear_call

Runner = Callable[[Any, Sequence[Any]], Sequence[Any]]


def run_with(runner: Runner, fun: Callable[..., Any], *args: Any) -> list[Any]:
    """Results of a function whose kernels are evaluated by ``runner(kernel, operands)``."""
    jaxpr = make_jaxpr(fun)(*args)
    count = 0

    def evaluate(eqn: Eqn, operands: Sequence[Any]) -> Sequence[Any]:
        nonlocal count
        if eqn.primitive is pallas_call_p:
            count += 1
            return runner(eqn.params["kernel"], [np.asarray(device_get(x)) for x in operands])
        linear = body_of_linear_call(eqn, operands)
        if linear is not None:
            return interpret(*linear, evaluate)
        body = _body_with_kernels(eqn)
        if body is not None:
            return interpret(body, operands, evaluate)
        results = eqn.primitive.bind(*operands, **eqn.params)
        return results if eqn.primitive.multiple_results else [results]

    results = interpret(jaxpr, args, evaluate)
    assert count, "the function has no kernel"
    return [np.asarray(x) for x in results]


def _body_with_kernels(eqn: Eqn) -> Jaxpr | None:
    if not any(True for _ in _sub_jaxprs(eqn)):
        return None
    body = expanded(eqn.primitive, [v.aval for v in eqn.invars], eqn.params)
    return body if any(q.primitive is pallas_call_p for q in walk(body)) else None


def _sub_jaxprs(eqn: Eqn) -> Any:
    from primax_core.extend import jaxprs_in

    return jaxprs_in(eqn.params)


def checked(fun: Callable[..., Any], *args: Any) -> list[Any]:
    """Results with each access of the kernels checked: what ``interpret="check"`` does."""
    return run_with(check_steps, fun, *args)


def total(fun: Callable[..., Any]) -> Callable[..., Any]:
    """A scalar function of the results, whose derivatives are different for each element."""

    def scalar(*args: Any) -> Any:
        y = fun(*args)
        y = lax.convert_element_type(y, np.promote_types(y.dtype, np.float32))
        return lax.reduce_sum(lax.sin(y), tuple(range(y.ndim)))

    return scalar


def gradients(fun: Callable[..., Any], n: int) -> Callable[..., Any]:
    """Derivatives of `total` with respect to the first arguments."""
    return grad(total(fun), tuple(range(n)))


def normal(*shape: int, dtype: Any = np.float32, seed: int = 0) -> Any:
    """Normal numbers."""
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(dtype)


def close(actual: Any, expected: Any, tolerance: float = 2e-5) -> None:
    """Compare numbers with a tolerance relative to the largest one."""
    actual, expected = (np.asarray(device_get(x)).astype(np.float64) for x in (actual, expected))
    assert actual.shape == expected.shape
    scale = max(1.0, float(np.abs(expected).max(initial=0)))
    np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance * scale)
