"""The parts of the reference's multi-device interface that apply to one device."""

from __future__ import annotations

from typing import Any

from primax_core.extend.facade import make_compile_options as _make_options


def create_compile_options(
    computation: Any,
    tuple_args: bool,
    allow_prop_to_inputs: tuple[bool, ...],
    allow_prop_to_outputs: tuple[bool, ...],
    backend: Any,
    np_dev: Any,
    compiler_options: dict[str, Any] | None,
) -> Any:
    """Create jaxlib's options for compiling a module for devices.

    Args:
      computation: ignored.
      tuple_args: whether arguments are passed as one tuple.
      allow_prop_to_inputs, allow_prop_to_outputs: arguments and results for which XLA may choose
        another sharding.
      backend: ignored.
      np_dev: an array of devices.
      compiler_options: XLA's options by name.
    """
    options = _make_options(tuple(np_dev.flat), tuple((compiler_options or {}).items()))
    options.parameter_is_tupled_arguments = tuple_args
    build = options.executable_build_options
    build.allow_spmd_sharding_propagation_to_parameters = list(allow_prop_to_inputs)
    build.allow_spmd_sharding_propagation_to_output = list(allow_prop_to_outputs)
    return options


def __getattr__(name: str) -> Any:
    if name == "thread_resources":
        from .._deprecations import deprecated
        from .._thread_resources import thread_resources

        return deprecated(__name__, name, thread_resources, "primax.set_mesh")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
