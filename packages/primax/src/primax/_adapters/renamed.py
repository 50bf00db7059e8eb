"""Former names of ``jax.core`` that libraries still import."""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import Any, Final

_REMOVED_IN: Final = "0.3"

_NOW: Final = {
    **dict.fromkeys(
        "ClosedJaxpr DropVar Jaxpr JaxprEqn Literal Primitive TraceTag Var concrete_or_error "
        "find_top_trace get_opaque_trace_state jaxpr_as_fun mapped_aval set_current_trace "
        "subjaxprs take_current_trace unmapped_aval".split(),
        "primax.extend.core",
    ),
    "get_aval": "primax",
    "pytype_aval_mappings": "primax._adapters.values",
}
"""Current module of each former name of ``jax.core``."""

_UNDER: Final = {"get_aval": "typeof", "pytype_aval_mappings": "aval_mappings"}
_ADVICE: Final = {
    "pytype_aval_mappings": "is deprecated: a method __jax_array__, or "
    "primax_core.extend.register_value_type, makes values operands"
}


def answer(module: str, name: str) -> Any:
    """Return the object of a former name, with a deprecation warning.

    Raises:
      AttributeError: for any other name.
    """
    home = _NOW.get(name)
    if home is None:
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    current = _UNDER.get(name, name)
    advice = _ADVICE.get(name, f"is now {home}.{current}")
    warnings.warn(
        f"{module}.{name} {advice}; it will be removed in primax {_REMOVED_IN}.",
        DeprecationWarning,
        stacklevel=3,
    )
    return getattr(import_module(home), current)
