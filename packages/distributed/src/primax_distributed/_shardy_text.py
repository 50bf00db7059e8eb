"""Text of Shardy's attributes."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

from ._spec import UNCONSTRAINED, PartitionSpec, UnreducedKind, names_of


def mesh_text(mesh: Any) -> str:
    """A mesh that is written in place.

    >>> from primax_distributed import AbstractMesh
    >>> mesh_text(AbstractMesh((2, 4), ("x", "y")))
    'mesh<["x"=2, "y"=4]>'
    """
    axes = [f"{_quoted(name)}={size}" for name, size in mesh._sizes.items()]
    return f"mesh<[{', '.join(axes)}]>"


def sharding_text(
    mesh: Any, spec: PartitionSpec, ndim: int, open_axes: frozenset[int] = frozenset()
) -> str:
    """The sharding of a value of ``ndim`` axes.

    Args:
      mesh: a mesh or abstract mesh.
      spec: its partition spec.
      ndim: number of axes of the value.
      open_axes: axes that the partitioner may divide further, besides unconstrained ones.

    >>> from primax_distributed import AbstractMesh, P
    >>> sharding_text(AbstractMesh((2,), ("x",)), P("x"), 2)
    '#sdy.sharding<mesh<["x"=2]>, [{"x"}, {}]>'
    """
    spec.axes(ndim)  # checks the number of axes
    entries = [*spec, *(None,) * (ndim - len(spec))]
    dims = ", ".join(
        _dimension(entry, entry is UNCONSTRAINED or i in open_axes)
        for i, entry in enumerate(entries)
    )
    return f"#sdy.sharding<{mesh_text(mesh)}, [{dims}]{_unreduced(mesh, spec)}>"


def _unreduced(mesh: Any, spec: PartitionSpec) -> str:
    if not spec.unreduced:
        return ""
    names = ", ".join(_quoted(n) for n in mesh.axis_names if n in spec.unreduced)
    kind = spec.unreduced_kind
    reduction = "" if kind in (None, UnreducedKind.sum) else kind.name
    return f", unreduced={reduction}{{{names}}}"


def _dimension(entry: Any, is_open: bool) -> str:
    return "{" + ", ".join([*_all_quoted(names_of(entry)), *(["?"] if is_open else [])]) + "}"


def _all_quoted(names: Iterable[Hashable]) -> list[str]:
    return [_quoted(name) for name in names]


def _quoted(name: Hashable) -> str:
    """A name as a string of MLIR, which escapes bytes as two hexadecimal digits."""
    plain = [
        chr(byte) if 32 <= byte < 127 and byte not in b'"\\' else f"\\{byte:02X}"
        for byte in str(name).encode()
    ]
    return f'"{"".join(plain)}"'
