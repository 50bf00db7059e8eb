"""Methods of primitives and types that code written for JAX expects.

The core's primitives have ``bind``, ``name`` and ``multiple_results``. Interpreters written for JAX
also call the methods below. They are added to the core's classes when one of the modules with the
reference's names is first imported.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from primax_core.extend import AbstractRef, Primitive, ShapedArray, Trace, set_trace, trace_rule

from .custom_calls import CUSTOM_CALLS, bind_custom_call, bind_params
from .running import core_trace


def get_bind_params(self: Primitive, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of an equation as arguments of ``bind``.

    For a call of a function with custom derivatives, ``subfuns`` contains the function and its
    rules.
    """
    if self in CUSTOM_CALLS and "call_jaxpr" in params:
        return bind_params(self, params)
    return dict(params)


def bind_with_trace(
    self: Primitive,
    trace: Trace | None,
    args: Sequence[Any],
    avals: Sequence[Any],
    params: Mapping[str, Any],
    /,
) -> Any:
    """Apply the primitive under a given trace instead of the current one.

    Args:
      trace: the trace, or the object that represents eager evaluation.
      avals: types of ``args``; ignored, because the trace computes them.
    """
    with set_trace(core_trace(trace)):
        return self.bind(*args, **params)


def _to_tangent_aval(self: Any) -> Any:
    """The type of a tangent."""
    return self.tangent_aval()


def _update_weak_type(self: ShapedArray, weak_type: bool) -> ShapedArray:
    """The same type with another ``weak_type``."""
    return self.update(weak_type=weak_type)


def _add(cls: type, **members: Any) -> None:
    for name, member in members.items():
        if not hasattr(cls, name):
            setattr(cls, name, member)


_add(
    Primitive,
    get_bind_params=get_bind_params,
    bind_with_trace=bind_with_trace,
    call_primitive=False,
    ref_primitive=False,
    skip_canonicalization=False,
)
for _cls in (AbstractRef, ShapedArray):
    _add(
        _cls,
        to_tangent_aval=_to_tangent_aval,
        to_ct_aval=_to_tangent_aval,
        at_least_vspace=_to_tangent_aval,
    )
_add(ShapedArray, update_weak_type=_update_weak_type)


def _accept_subfuns(prim: Primitive) -> None:
    """Make a custom call accept ``subfuns`` in ``bind``.

    Other behaviour is unchanged, so derived jaxprs stay valid.
    """
    own = prim.rules[trace_rule]

    def bind_in_trace(trace: Trace | None, args: tuple[Any, ...], **params: Any) -> Any:
        if "subfuns" not in params:
            return own(trace, args, **params)
        with set_trace(trace):
            return bind_custom_call(prim, args, params)

    prim.rules[trace_rule] = bind_in_trace


for _prim in CUSTOM_CALLS:
    _accept_subfuns(_prim)
