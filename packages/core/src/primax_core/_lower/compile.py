"""StableHLO modules to executables."""

from __future__ import annotations

import hashlib
import time
import weakref
from collections.abc import Sequence

from .._base import caches, log
from .._base.config import state
from .._ir.jaxpr import Jaxpr
from .._runtime import custom_calls
from .._runtime.array import Spec, spec_of
from .._runtime.devices import check_not_forked, platform_of
from .._runtime.dispatch import Executable, Loaded, as_operand, device_of
from .._runtime.jaxlib_versions import _jax
from .._runtime.sharding import device_assignment
from .context import context, ir
from .module import Lowered, lower_module

# Loaded programs by the hash of their module: programs traced anew but equal share one as long as
# somebody uses it. The latest are kept, so that a function made anew in each round of a loop is
# compiled once.
_loaded: weakref.WeakValueDictionary[tuple, Loaded] = weakref.WeakValueDictionary()
_latest: dict[tuple, Loaded] = {}
_LATEST_KEPT = 64
caches.register(_latest.clear)


def compile_jaxpr(
    jaxpr: Jaxpr,
    in_specs: Sequence[Spec],
    *,
    name: str = "fn",
    donated: Sequence[int] = (),
    keep_unused: bool = False,
    compiler_options: tuple = (),
    sharding=None,
) -> Executable:
    """Compile a program for arguments of these types and places."""
    committed = sharding is not None or any(s.committed for s in in_specs)
    sharding = device_of(in_specs) if sharding is None else sharding
    device = next(iter(sharding.device_set))
    lowered = lower_module(
        jaxpr, name, platform_of(device), donated=donated, keep_unused=keep_unused
    )
    return load(lowered, jaxpr, in_specs, sharding, committed, donated, compiler_options)


def load(
    lowered: Lowered, jaxpr: Jaxpr, in_specs, sharding, committed, donated=(), compiler_options=()
) -> Executable:
    """Compile a lowered module and load it."""
    loaded = compile_module(lowered, (next(iter(sharding.device_set)),), compiler_options)
    out_specs = [spec_of(v.aval, sharding, committed) for v in jaxpr.outvars]
    consts = [as_operand(c)._buf for c in lowered.consts]
    in_shardings = [sharding] * len(in_specs)
    return Executable(
        loaded, in_specs, in_shardings, out_specs, lowered.kept, consts, donated, lowered.name
    )


def compile_module(lowered: Lowered, devs: tuple, compiler_options: tuple = ()) -> Loaded:
    """jaxlib's loaded executable of a module on some devices."""
    check_not_forked()
    custom_calls.ensure(lowered.needs)
    options = make_options(devs, compiler_options)
    client = devs[0].client
    module = lowered.module
    started = time.perf_counter() if state.log_compiles else 0.0
    if lowered.callbacks:
        with context:
            loaded = Loaded(
                client.compile_and_load(module, _jax.DeviceList(devs), options, lowered.callbacks)
            )
    else:
        bytecode = _bytecode(module)
        key = (hashlib.blake2b(bytecode).digest(), devs, compiler_options)
        loaded = _loaded.get(key)
        if loaded is None:
            # Not a DeviceList: iterating over one, jaxlib 0.10 gives its class an attribute.
            loaded = Loaded(client.compile_and_load(bytecode, devs, options))
            _loaded[key] = loaded
        _latest.pop(key, None)
        _latest[key] = loaded
        if len(_latest) > _LATEST_KEPT:
            _latest.pop(next(iter(list(_latest))), None)
    if state.log_compiles:
        log.warning(
            "Finished XLA compilation of %s in %.9f sec",
            f"jit({lowered.name})",
            time.perf_counter() - started,
        )
    return loaded


def _bytecode(module: ir.Module) -> bytes:
    import io

    out = io.BytesIO()
    module.operation.write_bytecode(file=out)
    return out.getvalue()


def make_options(devs: tuple, overrides: tuple = ()):
    """jaxlib's compile options for one partitioned computation over devices."""
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
        options.env_option_overrides = list(overrides)
    return options


def hlo_computation(lowered: Lowered):
    """jaxlib's HLO computation of a lowered module."""
    return _jax.mlir.mlir_module_to_xla_computation(
        _bytecode(lowered.module), use_tuple_args=False, return_tuple=False
    )


def hlo_cost(lowered: Lowered, client) -> dict[str, float]:
    """XLA's estimate of what a lowered module costs, before optimisation."""
    return _jax.hlo_module_cost_analysis(client, hlo_computation(lowered).as_hlo_module())
