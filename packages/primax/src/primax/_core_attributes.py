"""Attributes of the reference that the core's classes have under other names or not at all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from primax_core import Inline, vjp
from primax_core.extend import Jaxpr
from primax_core.extend.facade import SourceInfo, add_attributes


def _jaxpr(self: Jaxpr) -> Jaxpr:
    """The jaxpr itself: one class is both the open and the closed form."""
    return self


def _literals(self: Jaxpr) -> list[Any]:
    """The values of the constants: ``consts``."""
    return self.consts


def _map_jaxpr(self: Jaxpr, f: Callable[[Jaxpr], Jaxpr]) -> Jaxpr:
    """Return ``f`` of the jaxpr."""
    return f(self)


def _traceback(self: SourceInfo) -> Any:
    """The source location in the core's representation; ``None`` if unknown."""
    return tuple(self) or None


def _name_stack(self: SourceInfo) -> Any:
    """The enclosing scopes."""
    from ._adapters.naming import NameStack

    return NameStack.of(self.ctx)


def _replace(self: SourceInfo, *, traceback: Any = None, name_stack: Any = None) -> SourceInfo:
    """Return a copy with other fields."""
    info = SourceInfo(self if traceback is None else traceback)
    info.ctx = self.ctx if name_stack is None else name_stack.names()
    return info


add_attributes(
    SourceInfo,
    traceback=property(_traceback),
    name_stack=property(_name_stack),
    replace=_replace,
)
add_attributes(Jaxpr, jaxpr=property(_jaxpr), literals=property(_literals), map_jaxpr=_map_jaxpr)
add_attributes(type(vjp(lambda: ())[1]), structured_residuals=())
add_attributes(Inline, JAX_EARLY=Inline.TRACING, JAX_LATE=Inline.LOWERING)
