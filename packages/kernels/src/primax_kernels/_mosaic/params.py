"""Parameters of the compiler for TPUs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from .errors import located_text

UNSUPPORTED: Final = {
    "flags": None, "opt_level": None, "fuse_transposed_lhs_in_matmul": False,
    "allow_collective_id_without_custom_barrier": False, "use_tc_tiling_on_sc": None,
}  # fmt: skip
"""Parameters that the compiler's call has no field for, with the values that mean nothing."""

_FIELDS: Final = (
    "allow_input_fusion", "collective_id", "disable_bounds_checks", "disable_semaphore_checks",
    "internal_scratch_in_bytes", "skip_device_barrier",
)  # fmt: skip
"""Parameters that are fields of the call's configuration."""


def parameter(params: Any, name: str, default: Any = None) -> Any:
    """A parameter of a `tpu.CompilerParams`, a mapping, or ``None``."""
    value = params.get(name) if isinstance(params, Mapping) else getattr(params, name, None)
    return default if value is None else value


def configuration(params: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Fields of the kernel's part of the configuration, and those beside it."""
    inside: dict[str, Any] = {
        "serialization_format": 1,
        "needs_layout_passes": bool(parameter(params, "needs_layout_passes", True)),
    }
    for name in _FIELDS:
        value = parameter(params, name)
        if value is not None and value is not False:
            inside[name] = list(value) if name == "allow_input_fusion" else value
    if parameter(params, "shape_invariant_numerics", True) is False:
        inside["shape_invariant_numerics"] = False
    outside: dict[str, Any] = {}
    limit = parameter(params, "vmem_limit_bytes")
    if limit is not None:
        outside["scoped_memory_configs"] = [{"memory_space": 1, "offset": 0, "size": int(limit)}]
    return inside, outside


def side_effect(params: Any) -> bool:
    """Return True if the call is kept even if its results are unused."""
    value = parameter(params, "has_side_effects", False)
    return getattr(value, "value", value) not in (False, "pure")


def reasons_of_params(kernel: Any, params: Any) -> list[str]:
    """Parameters that have no effect, or no meaning."""
    reasons = []
    for name, neutral in UNSUPPORTED.items():
        value = parameter(params, name)
        if value is not None and value != neutral:
            text = f"compiler_params has {name}={value!r}, which this backend does not pass on"
            reasons.append(located_text(f"{text}: leave it away", kernel))
    if parameter(params, "serialization_format", 1) != 1:
        text = "serialization_format is 1, the only one there is"
        reasons.append(located_text(text, kernel))
    least = {"vmem_limit_bytes": 1, "internal_scratch_in_bytes": 0, "collective_id": 0}
    for name, low in least.items():
        value = parameter(params, name)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
            reasons.append(located_text(f"{name} is an integer, got {value!r}", kernel))
        elif value is not None and value < low:
            reasons.append(located_text(f"{name} is at least {low}, got {value}", kernel))
    fused = parameter(params, "allow_input_fusion", ())
    if not isinstance(fused, Sequence) or not all(isinstance(x, bool) for x in fused):
        text = f"allow_input_fusion is a sequence of Booleans, one for each operand, got {fused!r}"
        reasons.append(located_text(text, kernel))
    return reasons
