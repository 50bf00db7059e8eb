"""Tracing without execution: ``make_jaxpr``, ``eval_shape``, ``named_scope``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ContextDecorator
from typing import Any

from .._base import pytree
from .._base.config import state
from .._base.operand_trees import flatten_operands
from .._base.source import api_boundary, api_boundary_of
from .._engine.jit_cache import trace_function
from .._ir.jaxpr import Jaxpr
from .._trace.axes import extend_axis_env
from .._trace.reference_ops import references
from .arguments import as_tuple, check_callable, debug_info, name_of
from .shape_struct import type_like
from .stages import out_struct

_flatten, _unflatten = flatten_operands, pytree.tree_unflatten


def make_jaxpr(
    fun: Callable[..., Any],
    static_argnums: int | Sequence[int] = (),
    axis_env: Sequence[tuple[Any, int]] | None = None,
    return_shape: bool = False,
) -> Callable[..., Any]:
    """A function that returns the jaxpr of ``fun`` for its arguments.

    Args:
      fun: a function of pytrees of arrays.
      static_argnums: positions of arguments that are Python values.
      axis_env: pairs of a name and a size: axes that are bound during tracing, so that
        collectives can be used.
      return_shape: return ``(jaxpr, tree of ShapeDtypeStruct of the result)``.

    Returns:
      A function with the signature of ``fun``. Arguments may be arrays, numbers or
      ``ShapeDtypeStruct``.

    Raises:
      TypeError: if an argument or a result is not an array.

    Nothing is computed. Other transformations show as the operations that they leave:
    ``make_jaxpr(grad(f))`` is the jaxpr of the gradient.

    >>> make_jaxpr(lambda x: x * 2.0)(3.0)
    { lambda ; a:f32[]. let b:f32[] = mul a 2.0:f32[] in (b,) }
    >>> from primax_core import ShapeDtypeStruct
    >>> jaxpr, shape = make_jaxpr(lambda x: -x, return_shape=True)(ShapeDtypeStruct((2,), "int8"))
    >>> shape
    ShapeDtypeStruct(shape=(2,), dtype=int8)
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
      fun: a function of pytrees of arrays.
      args: positional arguments: arrays, numbers or ``ShapeDtypeStruct``, in pytrees.
      kwargs: keyword arguments, likewise.

    Returns:
      A pytree of ``ShapeDtypeStruct`` with the structure of the result.

    Raises:
      TypeError: if an argument or a result is not an array, or the function refuses the shapes.

    The function is traced: errors in shapes and dtypes appear, and no memory is used.

    >>> eval_shape(lambda x: x * 2.0, 3.0)
    ShapeDtypeStruct(shape=(), dtype=float32, weak_type=True)
    >>> from primax_core import ShapeDtypeStruct, lax
    >>> x = ShapeDtypeStruct((2, 2), "float32")
    >>> eval_shape(lax.dot, x, x)
    ShapeDtypeStruct(shape=(2, 2), dtype=float32)
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

    Scopes can be nested: the names are joined by slashes. A scope adds no operation.

    Args:
      name: the name.

    Raises:
      TypeError: if the name is not a string.

    It is a context manager and a decorator. Derivatives and batches of the operations keep the
    name, wrapped in that of the transformation.

    >>> from primax_core import jit
    >>> def f(x):
    ...     with named_scope("attention"):
    ...         return x * 2.0
    >>> "attention/mul" in jit(f).lower(1.0).as_text(debug_info=True)
    True
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
    """The function under a :func:`named_scope` with its name.

    The name appears in profiles, HLO dumps and the metadata of the operations.

    Args:
      fun: a function.
      name: the name of the scope; by default the name of the function.

    Returns:
      A function with the signature of ``fun``.

    Raises:
      TypeError: if ``fun`` is not callable.

    Derivatives and batches keep the name, wrapped in the name of the transformation. The call
    adds no operation.

    >>> from primax_core import jit
    >>> f = named_call(lambda x: x * 2.0, name="double")
    >>> text = jit(f).lower(1.0).as_text(debug_info=True)
    >>> "double/mul" in text
    True
    """
    check_callable(fun)
    return named_scope(name or name_of(fun))(fun)
