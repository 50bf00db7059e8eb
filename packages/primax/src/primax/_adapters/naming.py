"""Named scopes and source locations in the reference's convention.

The core stores the scopes as a tuple of names, in ``state.name_stack`` and in an equation's
``ctx``. A transformation is a scope whose name ends in brackets: ``("f", "jvp()", "g")`` is shown
as ``f/jvp(g)``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from primax_core import extend
from primax_core.extend import facade, state
from primax_core.extend.facade import BRACKETS


class Scope(NamedTuple):
    """A named scope."""

    name: str


class Transform(NamedTuple):
    """A transformation, which encloses the scopes after it."""

    name: str


class NameStack:
    """The scopes and transformations around an operation, outermost first."""

    __slots__ = ("stack",)

    def __init__(self, stack: tuple[Scope | Transform, ...] = ()) -> None:
        self.stack: tuple[Scope | Transform, ...] = tuple(stack)

    def extend(self, name: str) -> NameStack:
        """Return the stack with one more inner scope."""
        return NameStack((*self.stack, Scope(name)))

    def transform(self, transform_name: str) -> NameStack:
        """Return the stack with one more inner transformation."""
        return NameStack((*self.stack, Transform(transform_name)))

    def names(self) -> tuple[str, ...]:
        """The representation in the core."""
        return tuple(s.name + BRACKETS if isinstance(s, Transform) else s.name for s in self.stack)

    @staticmethod
    def of(names: tuple[str, ...]) -> NameStack:
        """Convert the core's representation."""
        return NameStack(
            tuple(
                Transform(n[: -len(BRACKETS)]) if n.endswith(BRACKETS) else Scope(n) for n in names
            )
        )

    def __len__(self) -> int:
        return len(self.stack)

    def __iter__(self) -> Iterator[Scope | Transform]:
        return iter(self.stack)

    def __getitem__(self, index: slice) -> NameStack:
        return NameStack(self.stack[index])

    def __add__(self, other: NameStack) -> NameStack:
        return NameStack(self.stack + other.stack)

    def __radd__(self, other: NameStack) -> NameStack:
        return NameStack(other.stack + self.stack)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NameStack) and self.stack == other.stack

    def __hash__(self) -> int:
        return hash(self.stack)

    def __str__(self) -> str:
        return facade.joined(self.names())

    def __repr__(self) -> str:
        return f"NameStack(stack={self.stack!r})"


class SourceInfo(facade.SourceInfo):
    """Source information of an operation.

    The attributes ``traceback`` and ``name_stack`` and the method ``replace`` are those of
    equations' ``source_info``, see ``primax._core_attributes``.
    """

    def __new__(cls, traceback: Any, name_stack: NameStack) -> SourceInfo:
        info = tuple.__new__(cls, traceback or ())
        info.ctx = name_stack.names()
        return info


def new_source_info() -> SourceInfo:
    """Return an unknown location outside all scopes."""
    return SourceInfo(None, NameStack())


def current() -> SourceInfo:
    """Return the innermost user location on the call stack, and its scopes."""
    return SourceInfo(extend.capture(), current_name_stack())


def current_name_stack() -> NameStack:
    """Return the current scopes."""
    return NameStack.of(state.name_stack)


def new_name_stack(name: str = "") -> NameStack:
    """Return a stack of one scope, or an empty stack."""
    return NameStack().extend(name) if name else NameStack()


def summarize(source_info: facade.SourceInfo | tuple[Any, ...] | None, num_frames: int = 1) -> str:
    """Format a location as ``file:line:column (function)``; empty if it is unknown.

    Args:
      source_info: a :class:`SourceInfo`, or an equation's ``source_info``.
      num_frames: ignored, because each operation stores one location.
    """
    return extend.summarize(source_info) if source_info else ""


class set_name_stack:
    """Context manager that replaces the current scopes."""

    __slots__ = ("name_stack", "_saved")

    def __init__(self, name_stack: NameStack) -> None:
        self.name_stack: NameStack = name_stack

    def __enter__(self) -> NameStack:
        self._saved = state.name_stack
        state.name_stack = self.name_stack.names()
        return self.name_stack

    def __exit__(self, *error: object) -> None:
        state.name_stack = self._saved


def reset_name_stack() -> set_name_stack:
    """Context manager that leaves all scopes."""
    return set_name_stack(NameStack())


class extend_name_stack(set_name_stack):
    """Context manager that enters one more scope."""

    __slots__ = ()

    def __init__(self, name: str) -> None:
        super().__init__(current_name_stack().extend(name))


class transform_name_stack(set_name_stack):
    """Context manager that shows scopes inside the brackets of a transformation."""

    __slots__ = ()

    def __init__(self, name: str) -> None:
        super().__init__(current_name_stack().transform(name))


class user_context:
    """Context manager that sets the source location of operations, and optionally their scopes.

    Args:
      traceback: the location, from ``current()`` or an equation; ``None`` for the actual location.
    """

    __slots__ = ("_location", "_name_stack", "_saved")

    def __init__(self, traceback: Any, *, name_stack: NameStack | None = None) -> None:
        self._location = traceback
        self._name_stack = name_stack

    def __enter__(self) -> None:
        self._saved = state.source, state.name_stack
        if self._location:
            state.source = tuple(self._location)
        if self._name_stack is not None:
            state.name_stack = self._name_stack.names()

    def __exit__(self, *error: object) -> None:
        state.source, state.name_stack = self._saved
