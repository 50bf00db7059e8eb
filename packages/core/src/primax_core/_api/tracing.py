"""Tracing without execution: ``make_jaxpr``, ``eval_shape``, ``named_scope``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ContextDecorator
from typing import Any

from .._base import pytree
from .._base.config import state
from .._base.source import api_boundary, api_boundary_of
from .._engine.jit_cache import trace_function
from .._ir.jaxpr import Jaxpr
from .._trace.axes import extend_axis_env
from .._trace.reference_ops import references
from .arguments import as_tuple, check_callable, debug_info, name_of
from .shape_struct import type_like
from .stages import out_struct

_flatten, _unflatten = pytree.tree_flatten, pytree.tree_unflatten


def make_jaxpr(
    fun: Callable[..., Any],
    static_argnums: int | Sequence[int] = (),
    axis_env: Sequence[tuple[Any, int]] | None = None,
    return_shape: bool = False,
) -> Callable[..., Any]:
    """A function that returns the jaxpr of ``fun`` for its arguments.

    Args:
      static_argnums: arguments that are Python values.
      axis_env: names and sizes of axes that are bound during tracing.
      return_shape: return ``(jaxpr, tree of ShapeDtypeStruct of the result)``.

    >>> make_jaxpr(lambda x: x * 2.0)(3.0)
    { lambda ; a:f32[]. let b:f32[] = mul a 2.0:f32[] in (b,) }
    """
    check_callable(fun)

    @api_boundary_of(fun)
    def jaxpr_of(*args, **kwargs) -> Jaxpr | tuple[Jaxpr, Any]:
        nums = {i % len(args) for i in as_tuple(static_argnums)} if args else set()
        traced_args = tuple(a for i, a in enumerate(args) if i not in nums)

        def closed(*rest, **keywords):
            remaining = iter(rest)
            return fun(
                *[a if i in nums else next(remaining) for i, a in enumerate(args)], **keywords
            )

        leaves, in_tree = _flatten((traced_args, kwargs))
        info = debug_info(fun, "make_jaxpr", traced_args, kwargs)
        avals = [_aval(x, fun, info, i) for i, x in enumerate(leaves)]
        with _axes(axis_env or ()):
            traced = trace_function(closed if nums else fun, in_tree, avals, info)
        jaxpr = traced.jaxpr
        if references.ops.loaded:
            references.ops.check_aliases(leaves, traced.consts, info)
        if traced.consts:
            # Tracers of enclosing transformations become constants of the jaxpr.
            n = len(traced.consts)
            jaxpr = jaxpr.replace(
                constvars=jaxpr.invars[:n], consts=list(traced.consts), invars=jaxpr.invars[n:]
            )
        if not return_shape:
            return jaxpr
        return jaxpr, _unflatten(traced.out_tree, [out_struct(a) for a in jaxpr.out_avals])

    jaxpr_of.__name__ = jaxpr_of.__qualname__ = f"make_jaxpr({name_of(fun)})"
    return jaxpr_of


def _aval(x, fun, info, i):
    try:
        return type_like(x)
    except TypeError as e:
        path = info.arg_names[i] if info.arg_names and i < len(info.arg_names) else f"leaf {i}"
        raise TypeError(
            f"Error interpreting argument to {fun} as an abstract array. The problematic value is "
            f"of type {type(x)} and was passed to the function at path {path}. {e}"
        ) from e


class _axes:
    def __init__(self, env):
        self._managers = [extend_axis_env(name, size) for name, size in env]

    def __enter__(self):
        for m in self._managers:
            m.__enter__()

    def __exit__(self, *exc):
        for m in reversed(self._managers):
            m.__exit__(*exc)


@api_boundary
def eval_shape(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Shapes and dtypes of the results of ``fun``, without computing them.

    Args:
      args, kwargs: arrays, numbers or ``ShapeDtypeStruct``, in pytrees.

    >>> eval_shape(lambda x: x * 2.0, 3.0)
    ShapeDtypeStruct(shape=(), dtype=float32, weak_type=True)
    """
    check_callable(fun)
    if hasattr(fun, "trace") and hasattr(fun, "eval_shape") and not hasattr(fun.trace, "stage_of"):
        return fun.eval_shape(*args, **kwargs)
    leaves, in_tree = _flatten((args, kwargs))
    info = debug_info(fun, "eval_shape", args, kwargs)
    avals = [_aval(x, fun, info, i) for i, x in enumerate(leaves)]
    traced = trace_function(fun, in_tree, avals, info)
    if references.ops.loaded:
        references.ops.check_aliases(leaves, traced.consts, info)
    return _unflatten(traced.out_tree, [out_struct(a) for a in traced.jaxpr.out_avals])


class named_scope(ContextDecorator):
    """Names the operations traced within; shown in profiles and printed jaxprs.

    >>> with named_scope("attention"):
    ...     pass
    """

    def __init__(self, name: str):
        if not isinstance(name, str):
            raise TypeError(f"named_scope: name argument must be a string, got {name!r}")
        self.name = name
        self._saved: list = []

    def _recreate_cm(self):
        return named_scope(self.name)

    def __enter__(self) -> named_scope:
        self._saved.append(state.name_stack)
        state.name_stack = (*state.name_stack, self.name)
        return self

    def __exit__(self, *exc: object) -> None:
        state.name_stack = self._saved.pop()


def named_call(fun: Callable[..., Any], *, name: str | None = None) -> Callable[..., Any]:
    """The function under a :func:`named_scope` with its name."""
    check_callable(fun)
    return named_scope(name or name_of(fun))(fun)
