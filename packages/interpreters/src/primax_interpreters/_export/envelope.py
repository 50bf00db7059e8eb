"""Format of serialized exported functions.

::

    magic        8 bytes
    major        2 bytes: readers of a lower number cannot read it
    minor        2 bytes: readers of a lower number ignore unknown fields
    length       8 bytes: of the data after the checksum
    checksum    32 bytes: BLAKE2b of all other data
    a table in the FlatBuffers format

    table Dimensions { constraints: [string]; }
    table Type       { shape: [string]; dtype: string; weak: ubyte; scope: uint32; }
    table Axes       { axes: [uint32]; open: ubyte; }
    table Sharding   { axes: [string]; sizes: [uint32]; dims: [Axes]; memory: string; }
    table Node       { kind: ubyte; name: string; keys: [string]; aux: [ubyte]; children: [Node]; }
    table Function   { name: string; in_tree: Node; in_types: [Type]; out_tree: Node;
                       out_types: [Type]; platforms: [string]; devices: uint32;
                       ordered_effects: [string]; unordered_effects: [string];
                       disabled_checks: [string]; module: [ubyte]; convention: ushort;
                       kept: [uint32]; globals: ubyte; scopes: [Dimensions]; vjp: Function;
                       in_shardings: [Sharding]; out_shardings: [Sharding]; }

Minor version 1 has shardings; a missing one is an empty table. A reader of version 0 refuses the
module of several devices.

The checksum detects accidents, not attacks: the author of an artifact can compute its checksum.
Therefore every offset is checked when it is followed, and the module is first read in another
process (`check_portable`).
"""

from __future__ import annotations

import struct
from hashlib import blake2b
from typing import Any, Final

import numpy as np

from primax_core.errors import InvalidArtifactError
from primax_core.export import SymbolicScope, symbolic_shape
from primax_core.extend import ShapedArray, dtypes
from primax_core.extend.dimensions import is_symbolic_dim
from primax_core.extend.portable_modules import check_portable

from . import exporting
from .checks import DisabledSafetyCheck, allowed_calls
from .exported import Exported
from .sharding_tables import read_shardings, write_shardings
from .tables import (
    Buffer,
    Table,
    builder,
    damaged,
    write_numbers,
    write_refs,
    write_strings,
    write_table,
)  # fmt: skip
from .trees import read_tree, write_tree

MAGIC: Final = b"PRMXexp\n"
MAJOR: Final = 1
MINOR: Final = 1
_HEAD: Final = struct.Struct("<8sHHQ")
_BODY: Final = _HEAD.size + 32

(
    _NAME, _IN_TREE, _IN_TYPES, _OUT_TREE, _OUT_TYPES, _PLATFORMS, _DEVICES, _ORDERED, _UNORDERED,
    _DISABLED, _MODULE, _CONVENTION, _KEPT, _GLOBALS, _SCOPES, _VJP, _IN_SHARDINGS, _OUT_SHARDINGS,
) = range(18)  # fmt: skip
_SHAPE, _DTYPE, _WEAK, _SCOPE = range(4)


# Writing


def pack(exported: Exported, vjp_order: int = 0) -> bytes:
    """The bytes of an exported function, with its first derivatives.

    Raises:
      ValueError, TypeError: for values that cannot be serialized.
    """
    if not isinstance(vjp_order, int) or vjp_order < 0:
        raise ValueError(f"vjp_order must be a number of derivatives, 0 or more, got {vjp_order!r}")
    b = builder()
    b.Finish(_write(b, exported, vjp_order))
    return seal(bytes(b.Output()))


def seal(body: bytes, major: int = MAJOR, minor: int = MINOR) -> bytes:
    """Add the header to a table."""
    head = _HEAD.pack(MAGIC, major, minor, len(body))
    return b"".join((head, _digest(head + _digest(body)), body))


def _digest(data: bytes) -> bytes:
    return blake2b(data, digest_size=32).digest()


def _write(b: Any, exported: Exported, vjp_order: int) -> int:
    vjp = _write(b, exported.vjp(), vjp_order - 1) if vjp_order else None
    effects = [*exported.ordered_effects, *exported.unordered_effects]
    if effects:
        raise NotImplementedError(
            f"{exported.fun_name} has effects, which cannot be serialized: "
            f"{', '.join(map(str, effects))}"
        )
    fields = [
        (_NAME, "ref", b.CreateString(exported.fun_name)),
        (_IN_TREE, "ref", write_tree(b, exported.in_tree)),
        (_IN_TYPES, "ref", write_refs(b, [_write_type(b, a) for a in exported.in_avals])),
        (_OUT_TREE, "ref", write_tree(b, exported.out_tree)),
        (_OUT_TYPES, "ref", write_refs(b, [_write_type(b, a) for a in exported.out_avals])),
        (_PLATFORMS, "ref", write_strings(b, list(exported.platforms))),
        (_DEVICES, "u32", exported.nr_devices),
        (_DISABLED, "ref", write_strings(b, [str(c) for c in exported.disabled_safety_checks])),
        (_MODULE, "ref", b.CreateByteVector(exported.mlir_module_serialized)),
        (_CONVENTION, "u16", exported.calling_convention_version),
        (_KEPT, "ref", write_numbers(b, list(exported.module_kept_var_idx))),
        (_GLOBALS, "u8", int(exported.uses_global_constants)),
        (_SCOPES, "ref", _write_scope(b, exported)),
        (_VJP, "ref", vjp),
        (_IN_SHARDINGS, "ref", write_shardings(b, exported._in_named_shardings)),
        (_OUT_SHARDINGS, "ref", write_shardings(b, exported._out_named_shardings)),
    ]
    return write_table(b, fields)


def _write_scope(b: Any, exported: Exported) -> int | None:
    """The constraints on the dimension variables, which share one scope."""
    dims = [d for a in exported.in_avals for d in a.shape if is_symbolic_dim(d)]
    if not dims:
        return None
    texts = write_strings(b, list(dims[0].scope.constraints_str))
    return write_refs(b, [write_table(b, [(0, "ref", texts)])])


def _write_type(b: Any, aval: Any) -> int:
    shape = write_strings(b, [str(d) for d in aval.shape])
    dtype = b.CreateString(dtypes.full_name(aval.dtype))
    return write_table(
        b, [(_SHAPE, "ref", shape), (_DTYPE, "ref", dtype), (_WEAK, "u8", int(aval.weak_type))]
    )


# Reading


def deserialize(blob: bytes | bytearray | memoryview, *, trusted: bool = False) -> Exported:
    """The function from the bytes of ``Exported.serialize``.

    Nothing of the artifact is run, and no input crashes the process: the bytes are checked
    completely, and a module that was not written or read here before is first read in another
    process, which takes 0.2 s once for each artifact and machine.

    Args:
      blob: the bytes.
      trusted: the source of the bytes is trusted. The module is then read in this process directly,
        and may call the native functions named in ``disabled_checks`` when it was exported.
        Malicious bytes can end the process.

    Raises:
      InvalidArtifactError: if the bytes are truncated, damaged, of another format or of a later
        version, contain a class that is not registered here, or call disallowed native functions.

    >>> from primax_interpreters import export
    >>> export.deserialize(b"something else")
    Traceback (most recent call last):
    ...
    primax_core.errors.InvalidArtifactError: ...
    """
    if not isinstance(blob, (bytes, bytearray, memoryview)):
        raise TypeError(f"deserialize takes bytes, got {type(blob)}")
    body = unseal(bytes(blob))
    try:
        return _read(Buffer(body).root(), trusted)
    except (RecursionError, MemoryError, OverflowError) as e:
        raise InvalidArtifactError(f"the artifact is damaged: {type(e).__name__}") from None


def unseal(data: bytes) -> bytes:
    """The data after the header, which is checked."""
    if data[:8] != MAGIC:
        raise InvalidArtifactError(f"these bytes are not an exported function: {_foreign(data)}")
    if len(data) < _BODY:
        damaged(f"it has {len(data)} bytes, less than its header")
    _, major, minor, length = _HEAD.unpack_from(data)
    if major > MAJOR:
        raise InvalidArtifactError(
            f"the artifact was written by a later version of Primax, in format {major}.{minor}; "
            f"this one reads formats up to {MAJOR}: update it, or export again with this version"
        )
    if len(data) - _BODY != length:
        damaged(f"it has {len(data) - _BODY} bytes but its header says {length}")
    body = data[_BODY:]
    if data[_HEAD.size : _BODY] != _digest(data[: _HEAD.size] + _digest(body)):
        damaged("its checksum is wrong")
    return body


def _foreign(data: bytes) -> str:
    if not data:
        return "they are empty"
    if data[:4] == b"ML\xefR":
        return "they are an MLIR module; `deserialize` takes what `Exported.serialize` returns"
    if data[:4] == b"PRMX":
        return "they are a Primax file of another kind"
    return f"they begin with {data[:8]!r}"


def _read(table: Table, trusted: bool) -> Exported:
    vjp_table = table.table(_VJP)
    derivative = None if vjp_table is None else _read(vjp_table, trusted)
    in_tree, out_tree = read_tree(table.table(_IN_TREE)), read_tree(table.table(_OUT_TREE))
    sizes = _Sizes(table.tables(_SCOPES))
    in_avals = tuple([_read_type(t, sizes) for t in table.tables(_IN_TYPES)])
    out_avals = tuple([_read_type(t, sizes) for t in table.tables(_OUT_TYPES)])
    if in_tree.num_leaves != len(in_avals) or out_tree.num_leaves != len(out_avals):
        damaged("it does not have one type for each leaf")
    platforms = tuple(table.strings(_PLATFORMS))
    if not platforms:
        damaged("it names no platforms")
    kept_args = tuple(table.numbers(_KEPT))
    if list(kept_args) != sorted(set(kept_args)) or any(i >= len(in_avals) for i in kept_args):
        damaged("the arguments of main are not among its arguments")
    disabled = tuple(_read_check(t) for t in table.strings(_DISABLED))
    module = table.blob(_MODULE) or b""
    nr_devices = max(1, table.number(_DEVICES, "u32", 1))
    shardings = [
        read_shardings(table.tables(field), avals, nr_devices)
        for field, avals in ((_IN_SHARDINGS, in_avals), (_OUT_SHARDINGS, out_avals))
    ]
    main_avals = [in_avals[i] for i in kept_args]
    _check_module(module, trusted, platforms, main_avals, out_avals, disabled, nr_devices)
    return Exported(
        fun_name=table.string(_NAME),
        in_tree=in_tree,
        in_avals=in_avals,
        out_tree=out_tree,
        out_avals=out_avals,
        _in_named_shardings=shardings[0],
        _out_named_shardings=shardings[1],
        in_shardings_hlo=(None,) * len(in_avals),
        out_shardings_hlo=(None,) * len(out_avals),
        nr_devices=nr_devices,
        platforms=platforms,
        ordered_effects=(),
        unordered_effects=(),
        disabled_safety_checks=disabled,
        mlir_module_serialized=module,
        calling_convention_version=_convention(table),
        module_kept_var_idx=kept_args,
        uses_global_constants=bool(table.number(_GLOBALS, "u8", 0)),
        _get_vjp=None if derivative is None else lambda _: derivative,
    )


def _convention(table: Table) -> int:
    least = exporting.minimum_supported_calling_convention_version
    most = exporting.maximum_supported_calling_convention_version
    convention = table.number(_CONVENTION, "u16", 0)
    if not least <= convention <= most:
        raise InvalidArtifactError(
            f"the artifact follows calling convention {convention}; this version of Primax "
            f"supports {least} to {most}"
        )
    return convention


def _read_check(text: str) -> DisabledSafetyCheck:
    check = DisabledSafetyCheck(text)
    if text != "platform" and not check.is_custom_call():
        damaged(f"unknown check {text[:40]!r}")
    return check


def _read_type(table: Table, sizes: _Sizes) -> ShapedArray:
    shape = tuple(map(sizes.read, table.strings(_SHAPE)))
    dtype = _read_dtype(table.string(_DTYPE))
    return ShapedArray(shape, dtype, bool(table.number(_WEAK, "u8", 0)))


class _Sizes:
    """Reader of dimensions; those of one function share a scope."""

    def __init__(self, scopes: list[Table]):
        self.constraints = scopes[0].strings(0) if scopes else []
        self.scope: Any = None

    def read(self, text: str) -> Any:
        """A size, or a symbolic dimension."""
        if text.isascii() and text.isdigit() and len(text) <= 19:
            return int(text)
        if len(text) > _LONGEST:
            damaged(f"{text[:40]!r} is not a size")
        try:
            if self.scope is None:
                if sum(map(len, self.constraints)) > _LONGEST:
                    damaged("its constraints are too long")
                self.scope = SymbolicScope(self.constraints, _effort=_EFFORT)
            (dim,) = symbolic_shape(text, scope=self.scope)
        except InvalidArtifactError:
            raise
        except Exception as e:
            damaged(f"{text[:40]!r} is not a size: {e}")
        if not is_symbolic_dim(dim):
            damaged(f"{text[:40]!r} is not a size")
        return dim


_LONGEST: Final = 2000
# Bounds of dimensions are computed with about a million elements of tables in a second.
_EFFORT: Final = 2e6


def _read_dtype(name: str) -> Any:
    dtype = dtypes.dtype_named(name)
    if dtype is None:
        raise InvalidArtifactError(
            f"the artifact has a value of dtype {name[:40]!r}, which is unknown: import the "
            "package that defines it (primax.random for the dtypes of keys)"
        )
    return dtype


def _check_module(
    data: bytes, trusted: bool, platforms, in_avals, out_avals, disabled, nr_devices: int
) -> None:
    if len(platforms) > 1:
        in_avals = [ShapedArray((), np.dtype(np.int32)), *in_avals]
    check_portable(
        data, in_avals, out_avals, allowed=allowed_calls(disabled), trusted=trusted,
        nr_devices=nr_devices,
    )  # fmt: skip
