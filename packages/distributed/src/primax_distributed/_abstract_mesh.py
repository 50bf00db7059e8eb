"""Shapes of meshes without devices."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Final, NoReturn

from ._interning import Immutable, Interned, put
from ._mesh_axes import Axes, AxisType, BaseMesh


class AbstractDevice(Immutable):
    """The kind of the devices of a mesh: as much as a traced program may depend on.

    Args:
      device_kind: name of the hardware.
      num_cores: cores of one device, where the platform has such a number.
      platform: name of the platform.
    """

    # No dataclass: their module takes a tenth of the time to import the wheel.
    __slots__ = ("device_kind", "num_cores", "platform")
    __match_args__ = __slots__

    device_kind: str
    num_cores: int | None
    platform: str

    def __init__(self, device_kind: str, num_cores: int | None, platform: str) -> None:
        put(self, "device_kind", device_kind)
        put(self, "num_cores", num_cores)
        put(self, "platform", platform)

    def _key(self) -> tuple[str, int | None, str]:
        return self.device_kind, self.num_cores, self.platform

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AbstractDevice) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __reduce__(self) -> tuple[Any, ...]:
        return AbstractDevice, self._key()

    def __repr__(self) -> str:
        return f"AbstractDevice({self._text()})"

    def _text(self) -> str:
        kind, cores, platform = self.device_kind, self.num_cores, self.platform
        return f"device_kind={kind}, num_cores={cores}, platform={platform}"


def abstract_device_of(devices: Sequence[Any]) -> AbstractDevice | None:
    """The kind of devices, or ``None`` if they differ."""
    kinds = {(d.device_kind, getattr(d, "num_cores", None), d.platform) for d in devices}
    return AbstractDevice(*kinds.pop()) if len(kinds) == 1 else None


_abstract_meshes: Final[Interned[AbstractMesh]] = Interned()


class AbstractMesh(BaseMesh):
    """Names, sizes and types of the axes of a mesh, without devices.

    Equal abstract meshes are one object.

    Args:
      axis_sizes: sizes of the axes.
      axis_names: names of the axes.
      axis_types: an :class:`AxisType` for each axis; by default ``Explicit``.
      abstract_device: the kind of the devices, if it is known.

    Raises:
      TypeError: if a size, a name or a type has the wrong type.
      ValueError: if the numbers of sizes, names and types differ, if a name occurs twice, or if a
        size is not positive.

    >>> AbstractMesh((2, 4), ("x", "y"))
    AbstractMesh('x': 2, 'y': 4, axis_types=(Explicit, Explicit))
    """

    __slots__ = ("abstract_device",)

    abstract_device: AbstractDevice | None

    def __new__(
        cls,
        axis_sizes: Sequence[int],
        axis_names: str | Sequence[Hashable],
        axis_types: AxisType | Sequence[AxisType] | None = None,
        *,
        abstract_device: AbstractDevice | None = None,
    ) -> AbstractMesh:
        axes = Axes("AbstractMesh", axis_sizes, axis_names, axis_types, AxisType.Explicit)
        if abstract_device is not None and not isinstance(abstract_device, AbstractDevice):
            raise TypeError(f"abstract_device must be an AbstractDevice, got {abstract_device!r}")
        key = (*axes.key, abstract_device)
        known = _abstract_meshes.get(key)
        if known is not None:
            return known
        self = object.__new__(cls)
        self._set_axes(axes)
        put(self, "abstract_device", abstract_device)
        return _abstract_meshes.add(key, lambda: self)

    @property
    def size(self) -> int:
        """Number of devices of a mesh of this shape; 0 if there are no axes."""
        return math.prod(self.axis_sizes) if self.axis_sizes else 0

    @property
    def empty(self) -> bool:
        """True if there are no axes."""
        return not self.axis_names

    @property
    def abstract_mesh(self) -> AbstractMesh:
        """This mesh."""
        return self

    def update(
        self,
        axis_sizes: Sequence[int] | None = None,
        axis_names: str | Sequence[Hashable] | None = None,
        axis_types: AxisType | Sequence[AxisType] | None = None,
        **kwargs: Any,
    ) -> AbstractMesh:
        """An abstract mesh with some arguments of the constructor replaced.

        >>> AbstractMesh((2,), ("x",)).update(axis_types=AxisType.Auto)
        AbstractMesh('x': 2, axis_types=(Auto,))
        """
        return AbstractMesh(
            self.axis_sizes if axis_sizes is None else axis_sizes,
            self.axis_names if axis_names is None else axis_names,
            self.axis_types if axis_types is None else axis_types,
            **{"abstract_device": self.abstract_device, **kwargs},
        )

    def update_axis_types(self, types: Mapping[Hashable, AxisType]) -> AbstractMesh:
        """An abstract mesh with the types of the named axes replaced; other names are ignored."""
        kinds = [types.get(n, t) for n, t in zip(self.axis_names, self.axis_types)]
        return self.update(axis_types=kinds)

    def _no_devices(self) -> NoReturn:
        raise ValueError(
            f"{self} has no devices: an AbstractMesh has names, sizes and types of axes only. Use "
            "a Mesh"
        )

    @property
    def devices(self) -> NoReturn:
        """Raise ``ValueError``: there are no devices."""
        self._no_devices()

    @property
    def device_ids(self) -> NoReturn:
        """Raise ``ValueError``, as ``devices``."""
        self._no_devices()

    @property
    def is_multi_process(self) -> NoReturn:
        """Raise ``ValueError``, as ``devices``."""
        self._no_devices()

    @property
    def local_devices(self) -> NoReturn:
        """Raise ``ValueError``, as ``devices``."""
        self._no_devices()

    @property
    def local_mesh(self) -> NoReturn:
        """Raise ``ValueError``, as ``devices``."""
        self._no_devices()

    def __enter__(self) -> NoReturn:
        self._no_devices()

    def __exit__(self, *exc_info: object) -> None:
        pass

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored_abstract, (*self._key(), self.abstract_device)

    def _key(self) -> tuple[Any, ...]:
        return self.axis_sizes, self.axis_names, self.axis_types

    def __repr__(self) -> str:
        if not self.axis_names:
            return "AbstractMesh((), axis_types=())"
        device = self.abstract_device
        kind = "" if device is None else f", {device._text()}"
        return f"AbstractMesh({self._axes_text()}{kind})"


def _restored_abstract(
    sizes: Any, names: Any, types: Any, device: AbstractDevice | None
) -> AbstractMesh:
    return AbstractMesh(sizes, names, types, abstract_device=device)


empty_abstract_mesh: Final = AbstractMesh((), ())
"""The abstract mesh without axes."""
