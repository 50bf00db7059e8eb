"""``composite``: a named operation with a decomposition, which a backend may replace."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from .._base import errors, pytree
from .._base.config import state
from .._base.operand_trees import flatten_operands
from .._base.source import api_boundary
from .._engine.jit_cache import trace_function
from .._ir.jaxpr import DebugInfo, Jaxpr
from .._ir.primitive import Primitive, batch, jvp, lower, transpose
from .._ir.samples import Sample, f32, samples
from .._lower.lazy import hlo, ir, mlir
from .._trace.core import Tracer, call_on, typeof
from .._trace.staging import eval_jaxpr, has_tracers
from .._transform.batching import batch_jaxpr
from .._transform.call_rules import add_call_rules
from .trigonometric import cos, sin

_flatten, _unflatten = flatten_operands, pytree.tree_unflatten

composite_p: Final = Primitive(
    "composite", multiple_results=True, cache_on=lambda params: params["call_jaxpr"].cache
)

_NAMESPACED: Final = re.compile(r"[a-zA-Z][a-zA-Z0-9_]*([.][a-zA-Z0-9_$]+)+")
_NO_JVP: Final = (
    "JVP rule for composite not implemented. You can use `jax.custom_jvp` to add support: give a "
    "custom_jvp function that calls the composite the derivative of its decomposition."
)


def composite(decomposition: Callable[..., Any], name: str, version: int = 0) -> Callable[..., Any]:
    """A function that is lowered to a named operation together with its decomposition.

    A backend that implements the name may use its own implementation. Other backends and eager
    calls compute the decomposition.

    Args:
      decomposition: a function of arrays (positional arguments, pytrees of them); its keyword
        arguments are attributes of the operation: numbers, strings, NumPy arrays, dtypes, and
        tuples, lists and dictionaries of them. ``None`` is left out.
      name: name with a namespace, as in ``"my.op"``.
      version: version number of the definition.

    Returns:
      A function of the same arguments, which returns the results of ``decomposition``.

    A composite has no derivative: wrap it with :func:`custom_jvp` or :func:`custom_vjp`. Under
    ``vmap`` the decomposition is mapped.

    Raises:
      UnexpectedTracerError: on a call, if the decomposition closes over a tracer or an attribute is
        a tracer.
      TypeError: on a call, if an attribute is of another type.

    >>> tangent = composite(lambda x: sin(x) / cos(x), "my.tangent")
    >>> float(tangent(0.0))
    0.0
    """

    @api_boundary
    def call(*args, **kwargs):
        leaves, in_tree = _flatten((args, {}))
        attributes = tuple((k, _frozen(name, k, v)) for k, v in kwargs.items())
        info = DebugInfo("composite", getattr(decomposition, "__name__", name))
        traced = trace_function(
            lambda *args: decomposition(*args, **kwargs), in_tree, [typeof(x) for x in leaves], info
        )
        if traced.consts or has_tracers(traced.jaxpr.consts):
            raise errors.UnexpectedTracerError(
                "Found a Primax Tracer as a constant in the decomposition for the composite op "
                f"'{name}'. This means that the decomposition function closes over a value that is "
                "involved in a transformation. Any values that aren't explicitly known at "
                "compile time must be explicitly passed as arguments to the composite."
            )
        if state.trace is None and not has_tracers(leaves):
            return _unflatten(traced.out_tree, call_on(None, traced.jaxpr, leaves))
        outs = composite_p.bind(
            *leaves, name=name, attributes=attributes, version=int(version),
            call_jaxpr=traced.jaxpr,
        )  # fmt: skip
        return _unflatten(traced.out_tree, outs)

    call.__name__ = getattr(decomposition, "__name__", name)
    call.__doc__ = decomposition.__doc__
    return call


class _Array:
    """Array attribute, hashed by value."""

    __slots__ = ("value", "key")

    def __init__(self, value: np.ndarray):
        self.value = value
        self.key = (value.shape, value.dtype, value.tobytes())

    def __eq__(self, other):
        return type(other) is _Array and self.key == other.key

    def __hash__(self):
        return hash(self.key)

    def __repr__(self):
        return repr(self.value)


class _Mapping(tuple):
    """Dictionary attribute, as pairs."""

    __slots__ = ()


def _frozen(name: str, key: str, value: Any) -> Any:
    """Hashable form of an attribute."""
    if isinstance(value, Tracer):
        raise errors.UnexpectedTracerError(
            f"Found a Primax Tracer as an attribute in the decomposition for the composite op "
            f"'{name}': {key} is {value!r}. Attributes have to be known at compile time; pass the "
            "value as a positional argument."
        )
    if isinstance(value, dict):
        return _Mapping((str(k), _frozen(name, key, v)) for k, v in value.items())
    if isinstance(value, (tuple, list)):
        return tuple(_frozen(name, key, v) for v in value)
    if value is None or isinstance(value, (bool, int, float, str, np.generic, np.dtype)):
        return value
    if isinstance(value, np.ndarray):
        return _Array(value.copy())
    if isinstance(value, type) and issubclass(value, np.generic):
        return np.dtype(value)
    raise TypeError(
        f"No attribute handler defined for type: {type(value)}, of {key} of the composite op "
        f"'{name}'. Attributes are numbers, strings, dtypes, NumPy arrays, and tuples, lists and "
        "dictionaries of them."
    )


def _attribute(value: Any) -> Any:
    """MLIR attribute of a frozen value."""
    if isinstance(value, _Mapping):
        return ir.DictAttr.get({k: _attribute(v) for k, v in value if v is not None})
    if isinstance(value, tuple):
        return ir.ArrayAttr.get([_attribute(v) for v in value if v is not None])
    if isinstance(value, str):
        return ir.StringAttr.get(value)
    if isinstance(value, np.dtype):
        return ir.TypeAttr.get(mlir.element_type(value))
    if isinstance(value, _Array):
        return mlir.dense(value.value)
    if isinstance(value, (bool, np.bool_)):
        return ir.BoolAttr.get(bool(value))
    dtype = value.dtype if isinstance(value, np.generic) else np.asarray(value).dtype
    element = mlir.element_type(dtype)
    if dtype.kind in "iu":
        return ir.IntegerAttr.get(element, int(value))
    return ir.FloatAttr.get(element, float(value))


def emit_composite(
    ctx: Any,
    values: Sequence[Any],
    name: str,
    attributes: dict[Any, Any],
    version: int,
    jaxpr: Jaxpr,
) -> list[Any]:
    """The named operation of a jaxpr, with the jaxpr as a private function of the module."""
    if not _NAMESPACED.fullmatch(name):
        raise ValueError(
            f"a composite's name must be a valid namespaced op name such as my_namespace.my_op, "
            f"got {name!r}"
        )
    types, callee, consts = ctx.private_function(jaxpr, name)
    ordered = ctx.tokens(jaxpr.effects)
    op = hlo.CompositeOp(
        types,
        [*ordered, *consts, *values],
        name=ir.StringAttr.get(name),
        decomposition=callee,
        version=mlir.i32(version),
        composite_attributes=ir.DictAttr.get(attributes),
    )
    return ctx.take_tokens(ordered, list(op.results))


add_call_rules(composite_p, "call_jaxpr")


@composite_p.rule(lower)
def _lower(ctx, *values, name, attributes, version, call_jaxpr):
    named_attributes = {k: _attribute(v) for k, v in attributes if v is not None}
    return emit_composite(ctx, values, name, named_attributes, version, call_jaxpr)


@composite_p.rule(jvp)
def _jvp(primals, tangents, **_):
    raise ValueError(_NO_JVP)


composite_p.unsupported(transpose, _NO_JVP)


@composite_p.rule(batch)
def _batch(axis, args, dims, *, call_jaxpr, **_):
    # The name denotes the operation on one example; for a batch only the decomposition is defined.
    batched, out_dims = batch_jaxpr(call_jaxpr, tuple(dims), axis)
    return eval_jaxpr(batched, args), list(out_dims)


@composite_p.rule(samples)
def _samples():
    tangent = composite(lambda x, *, scale: sin(x) / (cos(x) * scale), "primax.sample")
    no_jvp = dict.fromkeys(("jvp", "transpose", "second order", "symbolic zeros"), _NO_JVP)
    yield Sample(f32(3, low=-1, high=1)).set(call=lambda x: tangent(x, scale=2.0), without=no_jvp)
    yield Sample(f32(low=-1, high=1)).set(call=lambda x: tangent(x, scale=1), without=no_jvp)
