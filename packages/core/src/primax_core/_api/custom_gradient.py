"""Functions that return their value and their vjp function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._base import pytree
from .._base.source import take_attributes
from .arguments import check_callable
from .closures import convert_closure
from .custom_derivatives import custom_vjp


def custom_gradient(fun: Callable[..., Any], *, with_logs: bool = False) -> Any:
    """A function that returns its value and its vjp function, as a differentiable function.

    Args:
      fun: ``fun(*args)`` returns ``(value, vjp)``, where ``vjp(cotangent)`` returns one cotangent
        for each argument (bare, for a single one). Values in the closure of ``vjp`` are the
        residuals.
      with_logs: ``vjp`` returns ``(cotangents, logs)``; see :meth:`custom_vjp.defvjp_with_logs`.

    Returns:
      A function of the same arguments that returns the value only.

    Raises:
      TypeError: if ``fun`` does not return a pair, or the cotangents have another structure or
        dtype than the arguments.
      ValueError: if a cotangent has another shape than its argument.

    The rule defines reverse mode only: ``jvp`` of the function raises an error. It is a shorter
    form of :class:`custom_vjp`.

    >>> from primax_core import grad
    >>> @custom_gradient
    ... def f(x):
    ...     return x * x, lambda ct: 3.0 * ct
    >>> float(f(2.0)), float(grad(f)(2.0))
    (4.0, 3.0)
    """
    check_callable(fun)

    @custom_vjp
    def wrapped(*args, **kwargs):
        value, _ = fun(*args, **kwargs)
        return value

    def fwd(*args, **kwargs):
        value, vjp_fun = fun(*args, **kwargs)
        closure, consts = convert_closure(vjp_fun, value)
        return value, _Saved(closure, consts, len(args))

    def bwd(saved, ct):
        cts, logs = saved.closure(ct, saved.consts), None
        if with_logs:
            from .._engine.backward_logs import checked_logs

            cts, logs = checked_logs(cts, "of a custom_gradient function")
        if saved.n_args == 1 and not (isinstance(cts, tuple) and len(cts) == 1):
            cts = (cts,)
        return (tuple(cts), logs) if with_logs else tuple(cts)

    (wrapped.defvjp_with_logs if with_logs else wrapped.defvjp)(fwd, bwd)
    take_attributes(wrapped, fun)
    return wrapped


class _Saved:
    def __init__(self, closure, consts, n_args):
        self.closure, self.consts, self.n_args = closure, consts, n_args


pytree.register_pytree_node(
    _Saved,
    lambda s: (s.consts, (s.closure, s.n_args)),
    lambda aux, consts: _Saved(aux[0], list(consts), aux[1]),
)
