"""Layouts: the memory order of the elements of an array."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, TypeAlias

from .devices import Device
from .memory_spaces import Space
from .sharding import Sharding, ShardingLike


class _Auto:
    """A layout chosen by the compiler."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "AutoLayout"


class Layout:
    """The memory order of an array's axes.

    Args:
      major_to_minor: the axes, slowest first; ``(0, 1)`` is row-major.
      tiling: sizes of tiles, on platforms with tiled layouts.
      sub_byte_element_size_in_bits: packed size of elements smaller than a byte; 0 for the default.

    ``Layout.AUTO`` leaves the choice to the compiler.

    >>> Layout((1, 0))
    Layout(major_to_minor=(1, 0), tiling=None, sub_byte_element_size_in_bits=0)
    """

    __slots__ = ("major_to_minor", "tiling", "sub_byte_element_size_in_bits")

    AUTO: ClassVar[Any] = _Auto()

    def __init__(
        self, major_to_minor: Sequence[int], tiling: Sequence[Sequence[int]] | None = None,
        sub_byte_element_size_in_bits: int = 0,
    ):  # fmt: skip
        self.major_to_minor: tuple[int, ...] = tuple(int(d) for d in major_to_minor)
        self.tiling: tuple[tuple[int, ...], ...] | None = (
            None if tiling is None else tuple(tuple(int(n) for n in t) for t in tiling)
        )
        self.sub_byte_element_size_in_bits: int = int(sub_byte_element_size_in_bits)

    def _key(self) -> tuple[Any, ...]:
        return self.major_to_minor, self.tiling or (), self.sub_byte_element_size_in_bits

    def __eq__(self, other: object) -> bool:
        return type(other) is Layout and other._key() == self._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return (
            f"Layout(major_to_minor={self.major_to_minor}, tiling={self.tiling}, "
            f"sub_byte_element_size_in_bits={self.sub_byte_element_size_in_bits})"
        )

    def update(self, **changes: Any) -> Layout:
        """A copy with some fields changed."""
        return Layout(**{**{n: getattr(self, n) for n in Layout.__slots__}, **changes})

    def check_compatible_aval(self, aval_shape: Sequence[int]) -> None:
        """Raise ``ValueError`` if the layout does not fit an array of this shape."""
        if len(self.major_to_minor) != len(aval_shape):
            raise ValueError(
                "Length of major_to_minor and the rank of the value should match. Got "
                f"major_to_minor={self.major_to_minor} and shape={tuple(aval_shape)}"
            )
        if sorted(self.major_to_minor) != list(range(len(aval_shape))):
            raise ValueError(
                "major_to_minor must contain each axis of the array once, got "
                f"major_to_minor={self.major_to_minor} for shape={tuple(aval_shape)}"
            )


class Format:
    """A layout and a sharding.

    Args:
      layout: a :class:`Layout`, ``Layout.AUTO``, or ``None`` for the default.
      sharding: a ``Sharding``; required with a layout.
    """

    __slots__ = ("layout", "sharding")

    def __init__(self, layout: Layout | Any | None = None, sharding: Any = None):
        if not (layout is None or layout is Layout.AUTO or isinstance(layout, Layout)):
            raise TypeError(
                "Invalid value received for the layout argument. Expected values are `None`, "
                f"`Layout.AUTO` or an instance of `Layout`. Got {layout} of type {type(layout)}"
            )
        if not (sharding is None or isinstance(sharding, Sharding)):
            raise TypeError(
                "Invalid value received for the sharding argument. Expected values are `None` or "
                f"an instance of `Sharding`. Got {sharding} of type {type(sharding)}"
            )
        if isinstance(layout, Layout) and sharding is None:
            raise ValueError(
                f"Sharding has to be concrete when layout is of type {Layout}. Please pass a "
                f"sharding such as SingleDeviceSharding. Got sharding {sharding}"
            )
        self.layout: Any = layout
        self.sharding: Any = sharding

    def __eq__(self, other: object) -> bool:
        return (
            type(other) is Format
            and other.layout == self.layout
            and other.sharding == self.sharding
        )

    def __hash__(self) -> int:
        return hash((self.layout, self.sharding))

    def __repr__(self) -> str:
        return f"Format(layout={self.layout}, sharding={self.sharding})"


def row_major(ndim: int) -> Layout:
    """The default layout."""
    return Layout(tuple(range(ndim)), ())


def canonical(layout: Any, shape: Sequence[int]) -> Any:
    """A layout in the form of specs: ``None`` for row-major.

    Raises:
      ValueError: if it does not fit an array of this shape.
    """
    if layout is None or layout is Layout.AUTO:
        return layout
    layout.check_compatible_aval(shape)
    if layout == row_major(len(shape)):
        return None
    return layout if layout.tiling is not None else layout.update(tiling=())


def mode_of(layout: Any) -> str:
    """XLA's notation of a layout: ``{0,1}``, the fastest axis first."""
    if layout is None:
        return "default"
    if layout is Layout.AUTO:
        return "auto"
    text = ",".join(str(d) for d in reversed(layout.major_to_minor))
    notes = "".join(f"T({','.join(map(str, tile))})" for tile in layout.tiling or ())
    if layout.sub_byte_element_size_in_bits:
        notes += f"E({layout.sub_byte_element_size_in_bits})"
    return f"{{{text}{':' + notes if notes else ''}}}"


def from_xla(text: str) -> Layout:
    """The layout of XLA's notation ``{0,1:T(8,128)}``."""
    import re  # only for layouts chosen by the compiler

    axes, _, notes = text.strip("{}").partition(":")
    order = tuple(int(d) for d in axes.split(",") if d)[::-1]
    tiles = tuple(
        tuple(int(n) for n in inner.split(",")) for inner in re.findall(r"\(([\d,]+)\)", notes)
        if "E(" + inner + ")" not in notes
    )  # fmt: skip
    bits = re.search(r"E\((\d+)\)", notes)
    return Layout(order, tiles, int(bits.group(1)) if bits else 0)


PlacementLike: TypeAlias = Device | ShardingLike | Format | Space
"""Where arrays are stored: a device, a sharding, one with a layout, or a memory kind."""
