"""Types of references, and effects on references."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from .avals import ShapedArray
from .effects import Effect, NamedEffect


class AbstractRef:
    """The aval of a reference to an array; interned, as array avals are.

    Args:
      inner_aval: the aval of the array.
      memory_space: the memory space, for kernels; not used by the core.
      kind: the use of the reference; not used by the core.

    >>> import numpy as np
    >>> AbstractRef(ShapedArray((3,), np.dtype("float32")))
    Ref{float32[3]}
    """

    __slots__ = ("inner_aval", "memory_space", "kind", "__weakref__")

    inner_aval: ShapedArray
    memory_space: Any
    kind: Any

    def __new__(
        cls, inner_aval: ShapedArray, memory_space: Any = None, kind: Any = None
    ) -> AbstractRef:
        key = (inner_aval, memory_space, kind)
        ref_aval = _interned.get(key)
        if ref_aval is None:
            self = object.__new__(cls)
            for name, value in zip(cls.__slots__, key):
                object.__setattr__(self, name, value)
            ref_aval = _interned.setdefault(key, self)
        return ref_aval

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError(f"AbstractRef is immutable: cannot set {name!r}; use .update(...)")

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the axes of the array."""
        return self.inner_aval.shape

    @property
    def dtype(self) -> Any:
        """Type of the array's elements."""
        return self.inner_aval.dtype

    @property
    def ndim(self) -> int:
        """Number of axes of the array."""
        return self.inner_aval.ndim

    @property
    def size(self) -> int:
        """Number of the array's elements."""
        return self.inner_aval.size

    @property
    def weak_type(self) -> bool:
        """True if the dtype of the array is a weak type."""
        return self.inner_aval.weak_type

    @property
    def placement(self) -> Any:
        """The placement of the array."""
        return self.inner_aval.placement

    @property
    def sharding(self) -> Any:
        """The sharding of the array, if its aval specifies one."""
        return self.inner_aval.sharding

    def update(self, **changes: Any) -> AbstractRef:
        """A copy with some fields changed: its own, or those of the array's aval."""
        own = {n: changes.pop(n, getattr(self, n)) for n in self.__slots__[:3]}
        if changes:
            own["inner_aval"] = own["inner_aval"].update(**changes)
        return AbstractRef(**own)

    def without_axis(self, i: int) -> AbstractRef:
        """The aval of a reference to one slice along axis ``i``."""
        return self.update(inner_aval=self.inner_aval.without_axis(i))

    def with_axis(self, i: int, size: Any, division: Any = None) -> AbstractRef:
        """The aval of a reference to ``size`` arrays stacked along a new axis ``i``."""
        return self.update(inner_aval=self.inner_aval.with_axis(i, size, division))

    def strip_weak_type(self) -> AbstractRef:
        """The same aval without weak type."""
        return self.update(inner_aval=self.inner_aval.strip_weak_type())

    def tangent_aval(self) -> AbstractRef:
        """The aval of a reference to the tangent."""
        return self.update(inner_aval=self.inner_aval.tangent_aval())

    def str_short(self) -> str:
        """``Ref{f32[3]}``."""
        return f"Ref{{{self.inner_aval.str_short()}}}"

    def __repr__(self) -> str:
        return f"Ref{{{self.inner_aval}}}"

    def __len__(self) -> int:
        return len(self.inner_aval)

    def __bool__(self) -> bool:
        return True  # also with length 0

    def __reduce__(self) -> tuple[Any, ...]:
        return AbstractRef, (self.inner_aval, self.memory_space, self.kind)

    def __copy__(self) -> AbstractRef:
        return self

    def __deepcopy__(self, memo: Any) -> AbstractRef:
        return self


_interned: dict[tuple[Any, ...], AbstractRef] = {}


def is_ref(aval: Any) -> bool:
    """Return True if an aval is that of a reference."""
    return type(aval) is AbstractRef


class RefEffect(Effect):
    """An effect on a reference operand of an equation, or a reference argument of a jaxpr.

    Attributes:
      input_index: the operand of the equation, or the argument of the jaxpr; the constants of a
        jaxpr follow its arguments.
    """

    name = "Effect"

    def __init__(self, input_index: int):
        self.input_index: int | None = input_index

    def at(self, index: int) -> RefEffect:
        """The same effect on another operand."""
        return type(self)(index)

    def seen_from(self, invars: Sequence[Any], binders: Mapping[Any, int]) -> Effect:
        """The effect as an effect of the enclosing jaxpr; a local effect if the reference is not an
        argument of the jaxpr."""
        assert self.input_index is not None
        if self.input_index >= len(invars):
            raise ValueError(
                "a sub-jaxpr of an operation closes over a reference: pass the reference as an "
                "argument of the function with the custom rule that uses it"
            )
        position = binders.get(invars[self.input_index])
        return local_ref_effect if position is None else self.at(position)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.input_index == self.input_index  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        return hash((type(self), self.input_index))

    def __repr__(self) -> str:
        return f"{self.name}({self.input_index})"


class ReadEffect(RefEffect):
    """A reference is read."""

    keeps = False
    name = "Read"


class WriteEffect(RefEffect):
    """A reference is written."""

    name = "Write"


class AccumEffect(RefEffect):
    """A value is added to the contents of a reference."""

    name = "Accum"


class LocalRefEffect(NamedEffect):
    """References are created and used inside the jaxpr only."""

    keeps = False
    local = True
    name = "LocalRef"


local_ref_effect = LocalRefEffect()
