"""Options of the reference without an effect in Primax: accepted and stored.

Each is listed with its default value. Programs written for JAX read them, and set them to control
features that Primax implements differently or does not have.
"""

from __future__ import annotations

import warnings
from typing import Any, Final

_DEFAULTS: Final[dict[str, Any]] = {
    "check_vma": False,
    "eager_constant_folding": False,
    "jax_accurate_erf_inv": False,
    "jax_backend_target": "",
    "jax_bcoo_cusparse_lowering": False,
    "jax_captured_constants_report_frames": 0,
    "jax_check_proxy_envs": True,
    "jax_check_static_indices": False,
    "jax_compilation_cache_check_contents": False,
    "jax_compilation_cache_expect_pgle": False,
    "jax_compiler_detailed_logging_min_ops": 10,
    "jax_compiler_enable_remat_pass": True,
    "jax_cpu_collectives_implementation": "gloo",
    "jax_cuda_visible_devices": "all",
    "jax_custom_jvp3": False,
    "jax_custom_vjp3": False,
    "jax_debug_leaked_clients_on_clear_backends": False,
    "jax_debug_log_modules": "",
    "jax_disable_most_optimizations": False,
    "jax_disable_vmap_shmap_error": False,
    "jax_disallow_mesh_context_manager": False,
    "jax_distributed_debug": False,
    "jax_dump_ir_modes": "stablehlo",
    "jax_dump_ir_to": "",
    "jax_enable_pgle": False,
    "jax_enable_preemption_service": True,
    "jax_enable_recoverability": False,
    "jax_error_checking_behavior_divide": "ignore",
    "jax_error_checking_behavior_nan": "ignore",
    "jax_error_checking_behavior_oob": "ignore",
    "jax_experimental_unsafe_xla_runtime_errors": False,
    "jax_export_calling_convention_version": 10,
    "jax_export_ignore_forward_compatibility": False,
    "jax_high_dynamic_range_gumbel": False,
    "jax_hlo_source_file_canonicalization_regex": None,
    "jax_include_debug_info_in_dumps": True,
    "jax_include_full_tracebacks_in_locations": True,
    "jax_log_checkpoint_residuals": False,
    "jax_logging_level": "NOTSET",
    "jax_memory_fitting_level": "O2",
    "jax_mock_gpu_topology": "",
    "jax_mosaic_allow_hlo": False,
    "jax_optimization_level": "UNKNOWN",
    "jax_pallas_enable_debug_checks": False,
    "jax_pallas_verbose_errors": False,
    "jax_persistent_cache_enable_xla_caches": None,
    "jax_pgle_aggregation_percentile": 90,
    "jax_pgle_profiling_runs": 3,
    "jax_pjrt_client_create_options": None,
    "jax_ragged_dot_use_ragged_dot_instruction": True,
    "jax_raise_on_ppermute_sort_diff": True,
    "jax_raise_persistent_cache_errors": False,
    "jax_remat3": False,
    "jax_remat_barrier_no_cotangents": False,
    "jax_remove_custom_partitioning_ptr_from_cache_key": False,
    "jax_rocm_visible_devices": "all",
    "jax_scan3": False,
    "jax_send_traceback_to_runtime": "off",
    "jax_serialization_version": 0,
    "jax_share_binary_between_hosts": False,
    "jax_share_binary_between_hosts_timeout_ms": 1200000,
    "jax_sort_devices_by_process_index": True,
    "jax_source_url_schema": None,
    "jax_traceback_in_locations_limit": 100,
    "jax_use_cpp_shard_args": False,
    "jax_use_emit_pipeline_primitive": False,
    "jax_use_hlo_logistic_lowering": None,
    "jax_use_magma": "auto",
    "jax_use_rgv3": True,
    "jax_use_shardy_partitioner": True,
    "jax_use_simplified_jaxpr_constants": False,
    "jax_xla_backend": "",
    "jax_xla_profile_version": 0,
}

_set: dict[str, Any] = {}


def values() -> dict[str, Any]:
    """Return the values of these options."""
    return {**_DEFAULTS, **_set}


def read(name: str) -> Any:
    """Return the value of one of these options.

    Raises:
      AttributeError: for an unknown option.
    """
    if name not in _DEFAULTS:
        raise AttributeError(f"Unrecognized config option: {name}")
    return _set.get(name, _DEFAULTS[name])


def update(name: str, value: Any) -> None:
    """Store a value, and warn if it differs from the default.

    Raises:
      AttributeError: for an unknown option.
    """
    if read(name) != value and value != _DEFAULTS[name]:
        warnings.warn(
            f"The option {name} has no effect in Primax; {value!r} is stored and ignored.",
            UserWarning,
            stacklevel=3,
        )
    _set[name] = value
