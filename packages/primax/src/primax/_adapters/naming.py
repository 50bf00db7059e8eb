"""Named scopes and places in the source, in the reference's convention.

The core keeps the scopes as a tuple of names, in ``state.name_stack`` and in an equation's ``ctx``.
A transformation is a scope whose name ends in brackets: ``("f", "jvp()", "g")`` is shown
as ``f/jvp(g)``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from primax_core import extend
from primax_core.extend import state

_BRACKETS: Final = "()"


class Scope(NamedTuple):
    """A named scope."""

    name: str


class Transform(NamedTuple):
    """A transformation, around the scopes after it."""

    name: str


class NameStack:
    """The scopes and transformations around an operation, outermost first."""

    __slots__ = ("stack",)

    def __init__(self, stack: tuple[Scope | Transform, ...] = ()) -> None:
        self.stack: tuple[Scope | Transform, ...] = tuple(stack)

    def extend(self, name: str) -> NameStack:
        """The stack with one more scope inside."""
        return NameStack((*self.stack, Scope(name)))

    def transform(self, transform_name: str) -> NameStack:
        """The stack with a transformation inside."""
        return NameStack((*self.stack, Transform(transform_name)))

    def names(self) -> tuple[str, ...]:
        """As the core keeps it."""
        return tuple(s.name + _BRACKETS if isinstance(s, Transform) else s.name for s in self.stack)

    @staticmethod
    def of(names: tuple[str, ...]) -> NameStack:
        """From what the core keeps."""
        return NameStack(
            tuple(
                Transform(n[: -len(_BRACKETS)]) if n.endswith(_BRACKETS) else Scope(n)
                for n in names
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
        parts: list[str] = []
        around: list[str] = []  # transformations that enclose the next scope
        for part in self.stack:
            if isinstance(part, Transform):
                around.append(part.name)
            else:
                parts.append(_enclosed(part.name, around))
                around = []
        if around:
            parts.append(_enclosed("", around))
        return "/".join(parts)

    def __repr__(self) -> str:
        return f"NameStack(stack={self.stack!r})"


def _enclosed(name: str, transforms: list[str]) -> str:
    """``f(g(name))`` for the transformations ``f`` and ``g``."""
    for transform in reversed(transforms):
        name = f"{transform}({name})"
    return name


class SourceInfo:
    """Where an operation comes from.

    Attributes:
      traceback: the place in the source, as equations of the core keep it; ``None`` if unknown.
      name_stack: the scopes around it.
    """

    __slots__ = ("traceback", "name_stack")

    def __init__(self, traceback: Any, name_stack: NameStack) -> None:
        self.traceback: Any = traceback
        self.name_stack: NameStack = name_stack

    def replace(self, *, traceback: Any = None, name_stack: NameStack | None = None) -> SourceInfo:
        """A copy with what is given changed."""
        return SourceInfo(
            self.traceback if traceback is None else traceback,
            self.name_stack if name_stack is None else name_stack,
        )


def place_of(source_info: Any) -> Any:
    """The core's place, from a :class:`SourceInfo` or from what an equation has."""
    return source_info.traceback if isinstance(source_info, SourceInfo) else source_info


def new_source_info() -> SourceInfo:
    """An unknown place, outside of all scopes."""
    return SourceInfo(None, NameStack())


def current() -> SourceInfo:
    """The innermost place on the call stack outside the library, and the scopes around it."""
    return SourceInfo(extend.capture(), current_name_stack())


def current_name_stack() -> NameStack:
    """The scopes that are entered."""
    return NameStack.of(state.name_stack)


def new_name_stack(name: str = "") -> NameStack:
    """A stack of one scope, or of none."""
    return NameStack().extend(name) if name else NameStack()


def summarize(source_info: Any, num_frames: int = 1) -> str:
    """``file:line:column (function)``; empty if the place is not known.

    Args:
      source_info: a :class:`SourceInfo`, or an equation's ``source_info``.
      num_frames: one place is kept for each operation, so more than one has no influence.
    """
    place = place_of(source_info)
    return "" if place is None else extend.summarize(place)


class set_name_stack:
    """Context manager in which other scopes are entered than those around it."""

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
    """Context manager in which no scope is entered."""
    return set_name_stack(NameStack())


class extend_name_stack(set_name_stack):
    """Context manager in which one more scope is entered."""

    __slots__ = ()

    def __init__(self, name: str) -> None:
        super().__init__(current_name_stack().extend(name))


class transform_name_stack(set_name_stack):
    """Context manager in which scopes are shown inside the brackets of a transformation."""

    __slots__ = ()

    def __init__(self, name: str) -> None:
        super().__init__(current_name_stack().transform(name))


class user_context:
    """Context manager in which operations have a given place, and scopes if they are given.

    Args:
      traceback: the place, of ``current()`` or of an equation; ``None`` for that of the code.
    """

    __slots__ = ("_place", "_name_stack", "_saved")

    def __init__(self, traceback: Any, *, name_stack: NameStack | None = None) -> None:
        self._place = place_of(traceback)
        self._name_stack = name_stack

    def __enter__(self) -> None:
        self._saved = state.source, state.name_stack
        if self._place is not None:
            state.source = self._place
        if self._name_stack is not None:
            state.name_stack = self._name_stack.names()

    def __exit__(self, *error: object) -> None:
        state.source, state.name_stack = self._saved
