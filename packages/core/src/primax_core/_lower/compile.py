"""Compilation of jaxprs and StableHLO modules to executables."""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from .._base import caches, log, monitoring
from .._base.config import state
from .._base.digest import digest as digest_of
from .._base.single_flight import SingleFlight
from .._ir.jaxpr import Jaxpr
from .._runtime import custom_calls
from .._runtime.array import Spec, move, spec_of
from .._runtime.devices import check_not_forked, platform_of
from .._runtime.disk import executables as disk
from .._runtime.dispatch import Executable, Loaded, as_operand, device_of, relaid
from .._runtime.jaxlib_versions import MOST_ELEMENTS, _jax
from .._runtime.sharding import Sharding, SingleDeviceSharding, device_assignment
from .._trace.reference_ops import references
from .cache_key import key_of
from .formats import Formats
from .lazy import locations, lowering, mlir, readable
from .liveness import devices_of, kept_inputs, large_consts, largest_result
from .progress import shown

if TYPE_CHECKING:
    from .module import LoweredModule
    from .shardings import ExecutableShardings

# Loaded executables by the digest of their module: equal jaxprs share one while it is in use. The
# most recent ones stay alive, so that a function recreated in each iteration of a loop is compiled
# once.
_loaded: weakref.WeakValueDictionary[tuple, Loaded] = weakref.WeakValueDictionary()
_latest: dict[tuple, Loaded] = {}
_LATEST_LIMIT = 64
# The digests of lowered modules, by the cache keys and devices of their jaxprs.
_digests: dict[tuple, bytes] = caches.bounded_cache()
caches.register(_latest.clear)

_guards: list[Callable[[Any], None]] = []


@contextmanager
def guarded_compilation(guard: Callable[[Any], None]) -> Iterator[None]:
    """Context manager: call a function in all threads before compilations and cache lookups.

    Args:
      guard: ``guard(client)``, which raises an error to prevent a compilation.

    Returns:
      A context manager.

    The error is raised in the thread that compiles. Executables that a function already has run
    without the guard. Services that must not compile in the path of a request use it.

    >>> from primax_core import jit
    >>> def refuse(client):
    ...     raise RuntimeError("no compilation now")
    >>> with guarded_compilation(refuse):
    ...     try:
    ...         jit(lambda x: x * 7.0)(2.0)
    ...     except RuntimeError as error:
    ...         print(error)
    no compilation now
    """
    _guards.append(guard)
    try:
        yield
    finally:
        _guards.remove(guard)


def compile_jaxpr(
    jaxpr: Jaxpr,
    in_specs: Sequence[Spec],
    *,
    name: str = "fn",
    donated: Sequence[int] = (),
    keep_unused: bool = False,
    compiler_options: tuple = (),
    sharding=None,
    in_layouts: Sequence[Any] | None = None,
    out_layouts: Sequence[Any] | None = None,
    out_kinds: Sequence[str | None] | None = None,
    in_shardings: Sequence[Sharding | None] | None = None,
    out_shardings: Sequence[Sharding | None] | None = None,
) -> Executable:
    """Compile a jaxpr for arguments with these specs.

    Args:
      sharding: a sharding over the devices of the computation; by default those that operations
        name, then those of committed arguments.
      in_layouts: the layouts of the arguments, by default their own; ``Layout.AUTO`` leaves a
        layout to the compiler.
      out_layouts: the layouts of the results, by default row-major.
      out_kinds: memory kinds of the results, by default those set by the jaxpr.
      in_shardings: on several devices, the shardings of the arguments, by default their own.
      out_shardings: on several devices, the shardings of the results, by default chosen by XLA.
    """
    if jaxpr.effects and references.ops.loaded:
        jaxpr = references.ops.for_lowering(jaxpr)
    if state.debug_nans or state.debug_infs:
        donated = ()  # the arguments are needed to locate a NaN
    committed = sharding is not None or any(s.committed for s in in_specs)
    if sharding is None:
        named = devices_of(jaxpr)
        sharding = device_of(in_specs, named, name)
        committed = committed or named is not None or state.default_placement is not None
    devs = sharding._devices
    for guard in _guards:
        guard(devs[0].client)
    platform = platform_of(devs[0])
    formats = Formats.of(jaxpr, in_specs, in_layouts, out_layouts, out_kinds)
    consts = list(large_consts(jaxpr).values())
    shardings = shardings_of(jaxpr, in_specs, sharding, in_shardings, out_shardings)
    keyed = disk.is_on(devs) and formats is None
    keyed = keyed and not state.compilation_cache_include_metadata_in_key
    described = None if shardings is None else shardings.key(consts)
    key = key_of(jaxpr, name, platform, donated, keep_unused, described) if keyed else None
    loaded = None if key is None else _recall(key, devs, compiler_options, name)
    if loaded is None:
        if platform == "cpu":
            _check_elements(jaxpr, MOST_ELEMENTS * sharding.num_devices)
        lowered = lower_module(
            jaxpr, name, platform, donated=donated, keep_unused=keep_unused, sharding=sharding,
            formats=formats, shardings=shardings,
        )  # fmt: skip
        return load(
            lowered, jaxpr, in_specs, sharding, committed, donated, compiler_options, key,
            out_shardings,
        )  # fmt: skip
    used_inputs = None if keep_unused else kept_inputs(jaxpr)
    return _executable(
        loaded, jaxpr, in_specs, sharding, committed, donated, name, used_inputs, consts,
        shardings=shardings, requested=out_shardings,
    )  # fmt: skip


def _check_elements(jaxpr: Jaxpr, most: int) -> None:
    """Raise ``ValueError`` if an operation has a result of more elements."""
    elements, eqn = largest_result(jaxpr)
    if eqn is not None and elements > most:
        types = ", ".join(v.aval.str_short() for v in eqn.outvars)
        raise ValueError(
            f"{eqn.primitive.name} has a result of type {types}, and XLA's CPU backend ends the "
            f"process for more than {most:,} elements. Compute it in parts"
        )


def shardings_of(
    jaxpr: Jaxpr, in_specs: Sequence[Spec], sharding: Sharding,
    in_shardings: Sequence[Sharding | None] | None = None,
    out_shardings: Sequence[Sharding | None] | None = None,
) -> ExecutableShardings | None:  # fmt: skip
    """The shardings of an executable on the devices of ``sharding``; ``None`` for one device."""
    if sharding.num_devices == 1:
        return None
    from .shardings import ExecutableShardings  # loaded on first use

    everywhere = sharding._replicated()
    return ExecutableShardings.of(jaxpr, in_specs, everywhere, in_shardings, out_shardings)


def lower_module(jaxpr: Jaxpr, name: str, platform: str, **options: Any) -> LoweredModule:
    """The StableHLO module of a jaxpr."""
    if jaxpr.effects and references.ops.loaded:
        jaxpr = references.ops.for_lowering(jaxpr)
    return lowering.lower_module(jaxpr, name, platform, **options)


def load(
    lowered: LoweredModule, jaxpr: Jaxpr, in_specs, sharding, committed, donated=(),
    compiler_options=(),
    program: bytes | None = None,
    out_shardings: Sequence[Sharding | None] | None = None,
) -> Executable:  # fmt: skip
    """Compile and load a lowered module; ``program`` is the cache key of its jaxpr, or ``None``."""
    loaded = compile_module(lowered, sharding._devices, compiler_options, program)
    return _executable(
        loaded, jaxpr, in_specs, sharding, committed, donated, lowered.name, lowered.kept_args,
        lowered.consts, lowered.formats, lowered.shardings, out_shardings,
    )  # fmt: skip


def _executable(
    loaded: Loaded, jaxpr: Jaxpr, in_specs, sharding, committed, donated, name, used_inputs, consts,
    formats: Formats | None = None, shardings: ExecutableShardings | None = None,
    requested: Sequence[Sharding | None] | None = None,
) -> Executable:  # fmt: skip
    # Handlers of process exit and fork, for processes that run executables.
    from .._runtime import forking as _forking, shutdown as _shutdown  # noqa: F401

    in_layouts = None
    arrays = [relaid(as_operand(c), None) for c in consts]
    if shardings is None and isinstance(sharding, SingleDeviceSharding):
        in_shardings = [sharding] * len(in_specs)
        outs = [sharding] * len(jaxpr.outvars)
    elif shardings is None:
        in_shardings, outs = _on_mesh_of_one(sharding, in_specs, jaxpr, requested)
    else:
        const_shardings, in_shardings, outs = shardings.chosen(loaded.raw, arrays, used_inputs)
        arrays = [move(c, s) for c, s in zip(arrays, const_shardings)]
    if formats is None:
        out_specs = [spec_of(v.aval, s, committed) for v, s in zip(jaxpr.outvars, outs)]
    else:
        in_layouts, out_layouts = formats.chosen(loaded.raw, used_inputs, len(consts))
        out_specs = [
            spec_of(v.aval, s if k is None else s.with_memory_kind(k), committed, o)
            for v, s, k, o in zip(jaxpr.outvars, outs, formats.out_kinds, out_layouts)
        ]
    bufs = [c._buf for c in arrays]
    return Executable(
        loaded,
        in_specs,
        in_shardings,
        out_specs,
        used_inputs,
        bufs,
        donated,
        name,
        jaxpr,
        in_layouts,
        [c._spec for c in arrays],
    )


def _on_mesh_of_one(
    sharding: Sharding, in_specs: Sequence[Spec], jaxpr: Jaxpr,
    requested: Sequence[Sharding | None] | None,
) -> tuple[list[Sharding], list[Sharding]]:  # fmt: skip
    """The shardings of arguments and results on a mesh of one device.

    The specs are those of the user: a result without one has that of the first argument, if it
    has its rank.
    """
    ins = [s.sharding if s.sharding._replicated() is sharding else sharding for s in in_specs]
    rank = in_specs[0].aval.ndim if in_specs else None
    outs = [ins[0] if v.aval.ndim == rank else sharding for v in jaxpr.outvars]
    if requested is not None:
        outs = [s if r is None else r for s, r in zip(outs, requested)]
    return ins, outs


def compile_module(
    lowered: LoweredModule, devs: tuple, compiler_options: tuple = (), program: bytes | None = None
) -> Loaded:
    """jaxlib's loaded executable of a module on devices."""
    check_not_forked()
    from .._runtime.mappings import budget

    budget.spend()
    custom_calls.ensure(lowered.needs)
    options = make_options(devs, compiler_options)
    started = time.perf_counter()
    if state.compilation_cache_include_metadata_in_key:
        program = None
        digest = digest_of(mlir.bytecode(lowered.located()))
    else:
        digest = lowered.digest()
    if lowered.callbacks:
        loaded = _compile_or_fetch(lowered, digest, devs, options)
    else:

        def make() -> Loaded:
            new = _load_carried(digest, devs, compiler_options, options) if carried else None
            if new is None:
                new = _compile_or_fetch(lowered, digest, devs, options)
            _loaded[digest, devs, compiler_options] = new
            return new

        loaded = _flights.do((digest, devs, compiler_options), _loaded.get, make)
        _remember(loaded, digest, devs, compiler_options)
        if program is not None:
            _link(program, devs, digest)
    _log_compiled(lowered.name, started)
    return loaded


_flights: Final = SingleFlight()

# Names of operations with comparators, which jaxlib cannot serialize once they ran.
_SORTS: Final = (b"sort", b"top_k")

carried: Final[dict[tuple, bytes]] = {}
"""Serialized executables of the generation of processes before this one; see ``carried.py``."""
caches.register(carried.clear)


def carried_key(digest: bytes, devs: tuple, compiler_options: tuple) -> tuple:
    """Key of an executable that is the same in the next generation."""
    client = devs[0].client
    everyone = len(client.devices())
    return digest, tuple(d.id for d in devs), compiler_options, client.process_index(), everyone


def loaded_executables() -> list[tuple[tuple, Loaded]]:
    """The loaded executables, by the digest of the module, the devices and compiler options."""
    return list(_loaded.items())


def _load_carried(digest: bytes, devs: tuple, compiler_options: tuple, options) -> Loaded | None:
    blob = carried.get(carried_key(digest, devs, compiler_options))
    if blob is None:
        return None
    try:
        return Loaded(devs[0].client.deserialize_executable(blob, devs, options), from_bytes=True)
    except Exception:  # it is compiled instead
        return None


@monitoring.timed_as(monitoring.COMPILE, lambda lowered, *_: f"jit({lowered.name})")
def _compile_or_fetch(lowered: LoweredModule, digest: bytes, devs, options) -> Loaded:
    calls, location = lowered.callbacks, None
    # Whether executables with callbacks can be loaded was tried on CPUs only.
    if disk.is_on(devs) and (not calls or devs[0].platform == "cpu"):
        location = disk.executable_location(digest, devs, options)
    raw = None if location is None else _fetch(location, devs, options, calls)
    if raw is not None:
        return Loaded(raw, True, calls)
    started = time.perf_counter()
    # Not a DeviceList: iterating over one sets an attribute of its class in jaxlib 0.10.
    bytecode = mlir.bytecode(lowered.located())
    try:
        with shown(lowered):
            load = devs[0].client.compile_and_load
            if calls:
                with mlir.context:
                    raw = load(lowered.located(), _jax.DeviceList(devs), options, calls)
            else:
                raw = load(bytecode, devs, options)
        loaded = Loaded(raw, bool(calls), calls)
    except Exception as error:
        locations.note_compilation(error, lowered)
        raise
    if location is not None:
        seconds = time.perf_counter() - started
        platform = platform_of(devs[0])
        check = readable.check_of(lowered.module, devs, options, calls)
        now = any(name in bytecode for name in _SORTS)
        disk.keep(location, loaded, lowered.name, platform, lowered.needs, seconds, check, now)
        if monitoring.listening:
            monitoring.record_event(monitoring.CACHE_MISS)
    return loaded


def _fetch(location, devs: tuple, options: Any, calls: Sequence = ()) -> Any | None:
    """jaxlib's executable from the disk, or ``None``; records events for listeners."""
    if not monitoring.listening:
        return disk.fetch(location, devs, options, calls)
    monitoring.record_event(monitoring.CACHE_REQUEST)
    started = time.perf_counter()
    raw = disk.fetch(location, devs, options, calls)
    if raw is not None:
        monitoring.record_event(monitoring.CACHE_HIT)
        took = time.perf_counter() - started
        monitoring.record_event_duration_secs(monitoring.CACHE_RETRIEVAL, took)
    return raw


def executable_bytes(
    lowered: LoweredModule, loaded: Loaded, devs: tuple, compiler_options: tuple
) -> bytes:
    """The serialized executable of a module."""
    client = devs[0].client
    if not loaded.from_bytes:
        try:
            return client.serialize_executable(loaded.raw)
        except _jax.JaxRuntimeError:  # a comparator that ran; otherwise it is raised again below
            pass
    options = make_options(devs, compiler_options)
    location = None
    if disk.is_on(devs):
        location = disk.executable_location(lowered.digest(), devs, options)
    stored = None if location is None else disk.stored(location)
    if stored is not None:
        return stored
    bytecode = mlir.bytecode(lowered.located())
    return client.serialize_executable(client.compile_and_load(bytecode, devs, options))


def _recall(key: bytes, devs: tuple, compiler_options: tuple, name: str) -> Loaded | None:
    """The executable of a jaxpr that was lowered before, in this or another process."""
    check_not_forked()
    started = time.perf_counter()
    digest = _digests.get((key, devs))
    if digest is None:
        location = disk.link_location(key, devs)
        digest = None if location is None else disk.link(location)
        if digest is None:
            return None
        _digests[key, devs] = digest

    def load_it() -> Loaded | None:
        from .._runtime.mappings import budget

        budget.spend()
        options = make_options(devs, compiler_options)
        location = disk.executable_location(digest, devs, options)
        raw = None if location is None else _fetch(location, devs, options)
        if raw is None:
            return None
        if monitoring.listening:
            took = time.perf_counter() - started
            monitoring.record_timed(monitoring.COMPILE, f"jit({name})", took)
        loaded = _loaded[digest, devs, compiler_options] = Loaded(raw, from_bytes=True)
        return loaded

    loaded = _flights.do((digest, devs, compiler_options), _loaded.get, load_it)
    if loaded is not None:
        _remember(loaded, digest, devs, compiler_options)
        _log_compiled(name, started)
    return loaded


def _link(program: bytes, devs: tuple, digest: bytes) -> None:
    if _digests.get((program, devs)) != digest:
        _digests[program, devs] = digest
        location = disk.link_location(program, devs)
        if location is not None:
            disk.keep_link(location, digest)


def _remember(loaded: Loaded, digest: bytes, devs: tuple, compiler_options: tuple) -> None:
    key = (digest, devs, compiler_options)
    loaded.digest = digest
    _loaded[key] = loaded
    _latest.pop(key, None)
    _latest[key] = loaded
    if len(_latest) > _LATEST_LIMIT:
        _latest.pop(next(iter(list(_latest))), None)


def _log_compiled(name: str, started: float) -> None:
    if state.log_compiles:
        log.warning(
            "Finished XLA compilation of %s in %.9f sec",
            f"jit({name})",
            time.perf_counter() - started,
        )


def make_options(devs: tuple, overrides: tuple = ()):
    """jaxlib's compile options for one partitioned computation on devices."""
    n = len(devs)
    options = _jax.CompileOptions()
    options.num_replicas = 1
    options.num_partitions = n
    options.device_assignment = device_assignment(devs)
    build = options.executable_build_options
    build.num_replicas = 1
    build.num_partitions = n
    build.use_spmd_partitioning = n > 1
    build.use_shardy_partitioner = True
    if overrides:
        from .effort_levels import EFFORT_OPTIONS, set_level

        for name, value in overrides:
            if name in EFFORT_OPTIONS:
                set_level(build, name, value)
        others = [(name, value) for name, value in overrides if name not in EFFORT_OPTIONS]
        options.env_option_overrides = others
    return options


def hlo_computation(lowered: LoweredModule):
    """jaxlib's HLO computation of a lowered module."""
    return _jax.mlir.mlir_module_to_xla_computation(
        mlir.bytecode(lowered.located()), use_tuple_args=False, return_tuple=False
    )


def hlo_cost(lowered: LoweredModule, client) -> dict[str, float]:
    """XLA's cost estimate of a lowered module, before optimization."""
    return _jax.hlo_module_cost_analysis(client, hlo_computation(lowered).as_hlo_module())
