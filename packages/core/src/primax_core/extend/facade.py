"""Access that only the facade ``primax`` needs, for its adapters to the reference's conventions.

These names change without notice and belong to no version of the extension API. Other packages use
:mod:`primax_core.extend` and its other modules.

Attributes and methods of the core's classes under the reference's names are added by
:func:`add_attributes`. Without the facade, the classes do not have them.
"""

from __future__ import annotations

import enum
from importlib import import_module
from typing import Any, Final

from .._base.identity import ROOT, is_own
from .._ir.jaxpr import SourceInfo as SourceInfo

_HOMES: Final = {
    "Attributes": "_ir.scope_attributes",
    "BRACKETS": "_ir.name_stack",
    "LoweringContext": "_lower.module",
    "context": "_lower.context",
    "describe_unplaced": "_ir.placement",
    "deserialize_portable_artifact": "_lower.portable",
    "hlo_to_stablehlo": "_lower.portable",
    "joined": "_ir.name_stack",
    "lower_body": "_lower.module",
    "lower_module": "_lower.module",
    "make_compile_options": "_lower.compile",
    "make_context": "_lower.context",
    "mapped_classes": "_api.vmap",
    "prefix_errors": "_base.tree_prefix",
    "refine_polymorphic_shapes": "_lower.portable",
    "serialize_portable_artifact": "_lower.portable",
    "unknown_location": "_lower.context",
}
_RENAMED: Final = {"make_compile_options": "make_options", "mapped_classes": "other"}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = import_module(f"..{home}", __package__)
    value = globals()[name] = getattr(module, _RENAMED.get(name, name))
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})


def add_attributes(cls: type, /, **attributes: Any) -> None:
    """Add attributes, methods or properties to a class of the core.

    Instances that exist get them, too. A member of an enumeration that is added to its class is an
    alias: ``cls.alias`` and ``cls["alias"]`` return the member.

    Args:
      cls: a class that the core defines.
      attributes: values by name: functions become methods.

    Returns:
      ``None``.

    Raises:
      TypeError: the core does not define ``cls``.
      AttributeError: ``cls`` or a base class has an attribute of one of these names; then nothing
        is added.

    >>> from primax_core.extend import Jaxpr, stage
    >>> add_attributes(Jaxpr, num_eqns=property(lambda self: len(self.eqns)))
    >>> stage(list, []).num_eqns
    0
    """
    module = getattr(cls, "__module__", "")
    if not isinstance(cls, type) or not is_own(module):
        raise TypeError(
            f"add_attributes adds attributes to classes of {ROOT}, got {cls!r}: define attributes "
            "of your own classes where the classes are defined"
        )
    existing = [name for name in attributes if hasattr(cls, name)]
    if existing:
        raise AttributeError(
            f"{cls.__qualname__} already has {', '.join(existing)}: add_attributes does not "
            "replace attributes. Choose other names, or add each attribute once"
        )
    for name, value in attributes.items():
        setattr(cls, name, value)
        if isinstance(cls, enum.EnumMeta) and isinstance(value, cls):
            cls._member_map_[name] = value
