"""``export``: lowering of a jitted function for several platforms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from primax_core import ShapeDtypeStruct, jit, tree_util, vjp
from primax_core.extend import Jaxpr, eval_jaxpr
from primax_core.extend.dimensions import is_static
from primax_core.extend.portable_modules import LoweredModule, lower_portable
from primax_core.extend.runtime import api_boundary, default_sharding, platform_of
from primax_core.stages import Traced

from .checks import DisabledSafetyCheck, allowed_calls, check_disabled
from .exported import Exported

# The numbers are those of the reference's calling conventions.
minimum_supported_calling_convention_version: Final = 9
maximum_supported_calling_convention_version: Final = 10


def default_export_platform() -> str:
    """The default platform of exported functions: that of the default device.

    >>> default_export_platform()
    'cpu'
    """
    (device,) = default_sharding().device_set
    return platform_of(device)


@api_boundary
def export(
    fun_jit: Callable[..., Any],
    *,
    platforms: Sequence[str] | None = None,
    disabled_checks: Sequence[DisabledSafetyCheck] = (),
    _override_lowering_rules: Sequence[tuple[Any, Any]] | None = None,
) -> Callable[..., Exported]:
    """A function that exports a jitted function for given argument types.

    Args:
      fun_jit: the result of ``jit``.
      platforms: the target platforms: ``cpu``, ``cuda``, ``rocm``, ``tpu``; by default the platform
        of the default device. They need not be available.
      disabled_checks: safety checks to skip, see `DisabledSafetyCheck`.

    Returns:
      A function of arguments like those of ``fun_jit``, arrays or ``ShapeDtypeStruct``, that
      returns an `Exported`.

    Raises:
      ValueError: if ``fun_jit`` is not jitted, if it closes over tracers, or if it calls native
        functions whose meaning may change between versions.
      NotImplementedError: if it calls back into Python.

    >>> import numpy as np
    >>> import primax_core as pc
    >>> double = pc.jit(lambda x: 2 * x)
    >>> from primax_interpreters import export
    >>> exported = export.export(double, platforms=["cpu", "cuda"])(
    ...     pc.ShapeDtypeStruct((3,), np.float32)
    ... )
    >>> export.deserialize(exported.serialize()).call(np.ones(3, np.float32)).tolist()
    [2.0, 2.0, 2.0]
    """
    if not hasattr(fun_jit, "trace"):
        raise ValueError(f"Function to be exported must be the result of `jit` but is: {fun_jit}")
    targets = _platforms(platforms)
    disabled = check_disabled(disabled_checks)
    overrides = dict(_override_lowering_rules or ())

    @api_boundary
    def do_export(*args: Any, **kwargs: Any) -> Exported:
        return export_traced(fun_jit.trace(*args, **kwargs), targets, disabled, overrides)

    return do_export


def _platforms(requested: Sequence[str] | None) -> tuple[str, ...]:
    if isinstance(requested, str):
        raise ValueError(
            f"platforms must be a sequence of names, got {requested!r}: use [{requested!r}]"
        )
    platforms = tuple(requested or (default_export_platform(),))
    for name in platforms:
        if not isinstance(name, str) or not name:
            raise ValueError(f"platforms must be a sequence of names, got {name!r} in it")
        if name == "gpu":
            raise ValueError("the platform 'gpu' is ambiguous: use 'cuda' or 'rocm'")
    return platforms


def export_traced(
    traced: Traced,
    platforms: tuple[str, ...],
    disabled: tuple[DisabledSafetyCheck, ...] = (),
    overrides: dict[Any, Any] | None = None,
    everywhere: Any = None,
) -> Exported:
    """Export a traced function.

    Args:
      everywhere: a sharding over its devices, if the function does not determine them.
    """
    lowered = lower_portable(traced, platforms, overrides, everywhere)
    _check_exportable(lowered, disabled)
    jaxpr = traced.jaxpr
    avals = tuple(tree_util.tree_leaves(traced.in_avals))
    effects = sorted((e for e in jaxpr.effects if not e.local), key=str)
    uses_globals = len(platforms) > 1 or not all(is_static(a.shape) for a in avals)
    return Exported(
        fun_name=lowered.name,
        in_tree=traced.in_tree,
        in_avals=avals,
        out_tree=traced.out_tree,
        out_avals=tuple(jaxpr.out_avals),
        _in_named_shardings=lowered.in_shardings or (None,) * len(avals),
        _out_named_shardings=lowered.out_shardings or (None,) * len(jaxpr.outvars),
        in_shardings_hlo=(None,) * len(avals),
        out_shardings_hlo=(None,) * len(jaxpr.outvars),
        nr_devices=lowered.nr_devices,
        platforms=platforms,
        ordered_effects=tuple(e for e in effects if e.ordered),
        unordered_effects=tuple(e for e in effects if not e.ordered),
        disabled_safety_checks=disabled,
        mlir_module_serialized=lowered.to_bytes(),
        calling_convention_version=maximum_supported_calling_convention_version,
        module_kept_var_idx=lowered.kept_args,
        uses_global_constants=uses_globals,
        _get_vjp=lambda exported: _export_vjp(jaxpr, exported, overrides, lowered),
    )


def _check_exportable(lowered: LoweredModule, disabled: Sequence[DisabledSafetyCheck]) -> None:
    if lowered.calls_python:
        raise NotImplementedError(
            f"{lowered.name} cannot be exported: it calls back into Python (pure_callback, "
            "io_callback, debug.print and the like), and functions of this process cannot be "
            "serialized. "
            "Remove the callback, or export the parts before and after it."
        )
    refused = lowered.refused_calls(allowed_calls(disabled))
    if refused:
        raise ValueError(
            "Cannot serialize code with custom calls whose targets have no compatibility "
            "guarantees: the native functions "
            f"{', '.join(map(repr, refused))} may change between versions. If all processes that "
            "load the artifact have the same functions, allow them with disabled_checks="
            f"[DisabledSafetyCheck.custom_call({next(iter(refused))!r})]. One of the calls:\n"
            f"{next(iter(refused.values()))[:500]}"
        )


def _export_vjp(
    jaxpr: Jaxpr, exported: Exported, overrides: dict[Any, Any] | None, lowered: LoweredModule
) -> Exported:
    n = len(exported.in_avals)

    def fun_vjp(*args_and_cts: Any) -> Any:
        args, cts = args_and_cts[:n], args_and_cts[n:]
        _, back = vjp(lambda *xs: eval_jaxpr(jaxpr, list(xs)), *args)
        return back(list(cts))

    cts = [a.tangent_aval() for a in exported.out_avals]
    avals = (*exported.in_avals, *cts)
    options: dict[str, Any] = {}
    shardings: list[Any] = [None] * len(avals)
    if lowered.shardings is not None:
        ins, outs = lowered.shardings
        shardings = [*ins, *outs]
        options["out_shardings"] = tuple(ins)
    args = [
        ShapeDtypeStruct(a.shape, a.dtype, weak_type=a.weak_type, sharding=s)
        for a, s in zip(avals, shardings)
    ]
    disabled = tuple(exported.disabled_safety_checks)
    traced = jit(fun_vjp, **options).trace(*args)
    return export_traced(traced, exported.platforms, disabled, overrides, lowered.everywhere)
