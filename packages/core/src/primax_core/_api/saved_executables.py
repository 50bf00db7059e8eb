"""``serialize`` and ``deserialize_and_load``: compiled functions as bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._base.errors import InvalidArtifactError
from .._base.pytree import PyTreeDef
from .._base.source import api_boundary
from .._ir.avals import ShapedArray
from .._ir.jaxpr import DebugInfo
from .._lower.lazy import _compile, readable
from .._runtime import (
    custom_calls,
    lapack_targets as _provides_them,  # noqa: F401
    saved_executables as files,
)
from .._runtime.array import physical, put, spec_of
from .._runtime.array_parts import PartReaders
from .._runtime.devices import Device, check_not_forked, devices
from .._runtime.dispatch import Executable, Loaded
from .._runtime.jaxlib_versions import to_host
from .._runtime.layouts import Layout
from .._runtime.saved_executables import damaged
from .._runtime.sharding import SingleDeviceSharding
from .stages import Compiled


@api_boundary
def serialize(compiled: Compiled) -> tuple[bytes, Any, Any]:
    """A compiled function as bytes, and the trees of its arguments and results.

    Args:
      compiled: the result of ``jit(f).lower(...).compile()``.

    Returns:
      ``(bytes, in_tree, out_tree)``, the arguments of `deserialize_and_load`.

    Raises:
      ValueError: if the function calls back into Python, or has more nested conditionals and loops
        than jaxlib can read.

    >>> import numpy as np
    >>> import primax_core as pc
    >>> compiled = pc.jit(pc.lax.sin).lower(np.ones(3, np.float32)).compile()
    >>> saved = pc.serialize_executable.serialize(compiled)
    >>> pc.serialize_executable.deserialize_and_load(*saved)(np.zeros(3, np.float32)).tolist()
    [0.0, 0.0, 0.0]
    """
    if not isinstance(compiled, Compiled):
        raise TypeError(
            f"serialize takes a compiled function, jit(f).lower(...).compile(), got {compiled!r}"
        )
    lowered: Any = compiled._lowered
    if isinstance(lowered, _Described):
        return lowered.serialized, compiled.in_tree, compiled.out_tree
    module, exe = lowered._module, compiled._exe
    name = lowered._traced.fun_name
    if module.callbacks:
        raise ValueError(
            f"{name} calls back into Python (pure_callback, io_callback, debug.print and the "
            "like), and functions of this process cannot be serialized with the executable"
        )
    sharding = exe.out_specs[0].sharding if exe.out_specs else None
    sharding = sharding or (exe.in_shardings or [None])[0]
    devs = tuple(exe.raw.local_devices()) if sharding is None else sharding._devices
    if lowered._plan is not None:
        raise ValueError(f"{name} takes or closes over references, which cannot be serialized")
    several = len(devs) > 1
    if several and not all(d.process_index == devs[0].client.process_index() for d in devs):
        raise ValueError(f"{name} runs on devices of several processes: each compiles its own")
    constants = [
        np.ascontiguousarray(PartReaders(s).values(b) if several else to_host(b))
        for b, s in zip(exe.consts, exe.const_specs, strict=True)
    ]
    about = {
        "name": name,
        "machine": files.machine(devs),
        "needs": sorted(module.needs),
        "options": [[k, v] for k, v in lowered._compiler_options],
        "committed": lowered._sharding is not None,
        "in": [files.type_text(a) for a in compiled._avals],
        "out": [files.type_text(a) for a in compiled._out_avals],
        "in_places": [
            _format_of(s, layout)
            for s, layout in zip(exe.in_shardings, exe.in_layouts, strict=True)
        ],
        "out_places": [_format_of(s.sharding, s.layout) for s in exe.out_specs],
        "kept": exe.kept_args,
        "donated": list(exe.donated),
        "constants": [files.type_text(ShapedArray(c.shape, c.dtype)) for c in constants],
        "arguments": list(_argument_names(compiled)),
    }
    if several:
        from .._runtime.saved_shardings import described

        specs = [*exe.const_specs, *exe.out_specs]
        ndims = [physical(a).ndim for a in compiled._avals] + [s.stored.ndim for s in specs]
        shardings = [*exe.in_shardings, *(s.sharding for s in specs)]
        about["shardings"] = {"devices": len(devs), **described(shardings, ndims)}
    constant_bytes = b"".join(c.tobytes() for c in constants)
    chosen = lowered._compiler_options
    blob = _compile.executable_bytes(module, exe.loaded, devs, chosen)
    readable.checked(name, module.module, devs, _compile.make_options(devs, chosen), blob)
    return files.seal(about, blob, constant_bytes), compiled.in_tree, compiled.out_tree


def _format_of(sharding: Any, layout: Any) -> list[Any]:
    """The memory kind and the layout of a buffer; ``None`` for the defaults."""
    kind = None if sharding._on_default_memory() else sharding.memory_kind
    return [kind, None if layout is None else list(layout._key())]


def _argument_names(compiled: Compiled) -> Sequence[str]:
    info = compiled._lowered._traced.debug_info
    return (info.arg_names if info else None) or ()


@api_boundary
def deserialize_and_load(
    serialized: bytes,
    in_tree: PyTreeDef,
    out_tree: PyTreeDef,
    backend: str | None = None,
    execution_devices: Sequence[Device] | None = None,
) -> Compiled:
    """The compiled function from the bytes of `serialize`.

    It runs only on a machine like the one on which it was compiled, with the same build of jaxlib;
    both are checked, and the checksum of the bytes. The bytes contain machine code: load only
    bytes from a trusted source.

    Args:
      serialized, in_tree, out_tree: the results of `serialize`.
      backend: the platform; by default the default platform.
      execution_devices: the devices to run on, as many as it was compiled for; by default the
        first ones.

    Returns:
      A ``Compiled``, which is called like the one that was serialized.

    Raises:
      InvalidArtifactError: if the bytes are truncated, damaged, of another format, or for another
        machine or another jaxlib.
    """
    if not isinstance(serialized, (bytes, bytearray, memoryview)):
        raise TypeError(f"deserialize_and_load takes bytes, got {type(serialized)}")
    about, blob, constant_bytes = files.unseal(bytes(serialized))
    check_not_forked()
    devs = _devices(backend, execution_devices, _count(about))
    files.check_machine(about.get("machine"), devs)
    described: Any = _Described(bytes(serialized), about, in_tree, out_tree)
    try:
        custom_calls.ensure(described.needs)
    except LookupError as e:
        if all(map(custom_calls.is_provided, described.needs)):
            raise  # an error of a package that loads its handler
        raise InvalidArtifactError(str(e)) from None
    try:
        options = _compile.make_options(devs, described.options)
        raw = devs[0].client.deserialize_executable(blob, devs, options)
    except Exception as e:
        raise InvalidArtifactError(f"the executable cannot be loaded: {e}") from e
    return Compiled(described, described.executable(raw, devs, constant_bytes))


def _count(about: dict[str, Any]) -> int:
    """The number of devices of an executable."""
    shardings = about.get("shardings")
    if shardings is None:
        return 1
    count = shardings.get("devices") if type(shardings) is dict else None
    if type(count) is not int or count < 2:
        damaged("its number of devices cannot be read")
    return count


def _devices(backend: str | None, requested: Sequence[Device] | None, n: int) -> tuple[Device, ...]:
    chosen = tuple(devices(backend)[:n] if requested is None else requested)
    if len(chosen) != n:
        what = "one device" if n == 1 else f"{n} devices"
        have = "this process has" if requested is None else "execution_devices has"
        raise ValueError(f"the executable is for {what}, but {have} {len(chosen)}: {chosen}")
    return chosen


class _Described:
    """The description of a compiled function in a file, in place of its earlier stages."""

    def __init__(self, serialized: bytes, about: dict[str, Any], in_tree: Any, out_tree: Any):
        self.serialized = serialized
        self.in_tree: Any = in_tree
        self.out_tree: Any = out_tree
        self._avals = [files.type_of(t) for t in _list(about, "in")]
        self._out_avals = [files.type_of(t) for t in _list(about, "out")]
        self._donated = tuple(_indices(about, "donated", len(self._avals)))
        self.fun_name = _text(about.get("name"))
        names = tuple(map(_text, _list(about, "arguments")))
        self.debug_info = DebugInfo("jit", self.fun_name, arg_names=names)
        self.needs = frozenset(map(_text, _list(about, "needs")))
        self.options = tuple((_text(k), v) for k, v in map(_pair, _list(about, "options")))
        self.kept_args = None
        if about.get("kept") is not None:
            self.kept_args = _indices(about, "kept", len(self._avals))
        self.in_places, self.out_places = _list(about, "in_places"), _list(about, "out_places")
        if (len(self.in_places), len(self.out_places)) != (len(self._avals), len(self._out_avals)):
            damaged("it does not have one format for each type")
        self.shardings = about.get("shardings")
        self.constants = [files.type_of(t) for t in _list(about, "constants")]
        self.committed = about.get("committed") is True
        self._traced = self
        self._plan = None
        for tree, avals, what in (
            (in_tree, self._avals, "in_tree"), (out_tree, self._out_avals, "out_tree"),
        ):  # fmt: skip
            if getattr(tree, "num_leaves", None) != len(avals):
                raise InvalidArtifactError(
                    f"the executable has {len(avals)} leaves, but {what} has "
                    f"{getattr(tree, 'num_leaves', None)}: pass the tree returned by serialize"
                )

    @property
    def in_avals(self) -> Any:
        """Avals of the arguments, in their tree."""
        return self.in_tree.unflatten(self._avals)

    def executable(self, raw: Any, devs: tuple[Device, ...], constant_bytes: bytes) -> Executable:
        """The executable, whose buffers are compared with their description."""
        constants = files.constants_of(self.constants, constant_bytes)
        const_shardings, ins, outs = self._shardings(devs)
        used = range(len(self._avals)) if self.kept_args is None else self.kept_args
        files.check_types(
            raw,
            [*map(_part, self.constants, const_shardings), *(_part(self._avals[i], ins[i])
             for i in used)],
            list(map(_part, self._out_avals, outs)),
        )  # fmt: skip
        arrays = [put(*c) for c in zip(constants, const_shardings, self.constants)]
        formats = list(map(_read_format, self.in_places, self._avals, ins))
        results = list(map(_read_format, self.out_places, self._out_avals, outs))
        specs = [spec_of(a, s, self.committed, x) for a, (s, x) in zip(self._avals, formats)]
        out_specs = [
            spec_of(a, s, self.committed, x) for a, (s, x) in zip(self._out_avals, results)
        ]
        return Executable(
            Loaded(raw, from_bytes=True), specs, [s for s, _ in formats], out_specs,
            self.kept_args, [a._buf for a in arrays], self._donated, self.fun_name,
            const_specs=[a._spec for a in arrays],
        )  # fmt: skip

    def _shardings(self, devs: tuple[Device, ...]) -> tuple[list, list, list]:
        """Shardings of the constants, arguments and results."""
        n_in, n_out, n_const = len(self._avals), len(self._out_avals), len(self.constants)
        n = n_in + n_const + n_out
        if len(devs) == 1:
            every: list[Any] = [SingleDeviceSharding(devs[0])] * n
        else:
            from .._runtime.saved_shardings import restored

            every = restored(self.shardings, devs, n)
        return every[n_in : n_in + n_const], every[:n_in], every[n_in + n_const :]


def _part(aval: ShapedArray, sharding: Any) -> ShapedArray:
    """The type of the buffer on one device."""
    stored = physical(aval)
    return ShapedArray(sharding.shard_shape(stored.shape), stored.dtype)


def _read_format(entry: Any, aval: ShapedArray, sharding: Any) -> tuple[Any, Any]:
    """The sharding and the layout of a buffer."""
    try:
        kind, layout = entry
        where = sharding if kind is None else sharding.with_memory_kind(_text(kind))
        if layout is not None:
            order, tiling, bits = layout
            layout = Layout(order, tiling or None, bits)
            layout.check_compatible_aval(physical(aval).shape)
    except (TypeError, ValueError) as e:
        damaged(f"a format cannot be read: {e}")
    return where, layout


def _list(about: dict[str, Any], name: str) -> list[Any]:
    values = about.get(name)
    if type(values) is not list:
        damaged(f"its {name} are missing")
    return values


def _text(x: Any) -> str:
    if type(x) is not str:
        damaged("a name is not a string")
    return x


def _pair(x: Any) -> Any:
    if type(x) is not list or len(x) != 2 or type(x[1]) not in (str, bool, int, float):
        damaged("an option cannot be read")
    return x


def _indices(about: dict[str, Any], name: str, n: int) -> list[int]:
    indices = _list(about, name)
    if not all(type(i) is int and 0 <= i < n for i in indices) or indices != sorted(set(indices)):
        damaged(f"its {name} are not indices of its arguments")
    return indices
