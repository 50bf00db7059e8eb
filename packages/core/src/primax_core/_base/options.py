"""Table of the configuration options, with the parsing and the checks of their values.

The scope of an option determines the caches whose keys include its value:

- ``TRACE``: it changes the traced jaxpr. Included in both keys of `config.state`.
- ``DISPATCH``: it changes only the execution of a traced jaxpr. Included in ``state.key``, not in
  ``state.trace_key``.
- ``NONE``: in neither key; the option is read at its use.
"""

from __future__ import annotations

from typing import Any, Final

from .identity import ENV_PREFIX

TRACE: Final = "trace"
DISPATCH: Final = "dispatch"
NONE: Final = "none"

_TRUE: Final = frozenset({"1", "true", "yes", "on", "y", "t"})
_FALSE: Final = frozenset({"0", "false", "no", "off", "n", "f", ""})


class Option:
    """One configuration option.

    ``kind`` is ``bool``, ``int``, ``float``, ``str`` or ``object``; ``choices`` restricts a string.
    ``optional`` allows ``None``.
    """

    __slots__ = ("choices", "default", "doc", "kind", "name", "optional", "scope")

    def __init__(
        self,
        name: str,
        kind: type,
        default: Any,
        scope: str = NONE,
        doc: str = "",
        *,
        choices: tuple[str, ...] | None = None,
        optional: bool = False,
    ) -> None:
        self.name: str = name
        self.kind: type = kind
        self.default: Any = default
        self.scope: str = scope
        self.doc: str = doc
        self.choices: tuple[str, ...] | None = choices
        self.optional: bool = optional or default is None

    @property
    def env_var(self) -> str:
        """Name of the environment variable that sets the option at import."""
        return ENV_PREFIX + self.name.upper()

    def check(self, value: Any) -> Any:
        """The value in canonical form, or a ``ValueError`` with the accepted values."""
        if value is None and self.optional:
            return None
        kind = self.kind
        if kind is object:
            return self._check_hashable(value)
        if type(value) is kind and self.choices is None:
            return value
        if kind is bool:
            return self._check_bool(value)
        if kind is str:
            return self._check_str(value)
        return self._check_number(value)

    def parse(self, text: str) -> Any:
        """The value of an environment variable's text."""
        if self.optional and text.strip().lower() in ("", "none"):
            return None
        if self.kind in (int, float):
            try:
                return self.kind(text)
            except ValueError:
                raise ValueError(
                    f"environment variable {self.env_var}={text!r} is not {_article(self.kind)}"
                ) from None
        try:
            return self.check(text)
        except ValueError as error:
            raise ValueError(f"environment variable {self.env_var}: {error}") from None

    def _check_hashable(self, value: Any) -> Any:
        try:
            hash(value)
        except TypeError:
            raise ValueError(f"option {self.name} takes hashable values, got {value!r}") from None
        return value

    def _check_bool(self, value: Any) -> bool:
        if isinstance(value, str):
            text = value.strip().lower()
            if text in _TRUE or text in _FALSE:
                return text in _TRUE
        elif value is None or type(value).__name__ in ("bool", "bool_"):
            return bool(value)
        elif isinstance(value, int) and value in (0, 1):
            return bool(value)
        raise ValueError(f"option {self.name} takes True or False, got {value!r}")

    def _check_str(self, value: Any) -> str:
        value = getattr(value, "value", value)  # accept members of an enum
        if not isinstance(value, str):
            raise ValueError(self._message(value))
        if self.choices is None or value in self.choices:
            return value
        for choice in self.choices:
            if choice.lower() == value.lower():
                return choice
        raise ValueError(self._message(value))

    def _check_number(self, value: Any) -> Any:
        if not isinstance(value, bool):
            if isinstance(value, self.kind) or self.kind is float and isinstance(value, int):
                return self.kind(value)
            if self.kind is int and hasattr(value, "__index__"):
                return value.__index__()
        none = "None or of type" if self.optional else "of type"
        raise ValueError(
            f"new {self.kind.__name__} config value must be {none} {self.kind.__name__}, "
            f"got {value!r} of type {type(value)} for option {self.name}"
        )

    def _message(self, value: Any) -> str:
        none = "None or " if self.optional else ""
        if self.choices is not None:
            accepted = f"new enum value must be {none}in {list(self.choices)}"
        else:
            accepted = f"new string config value must be {none}of type str"
        return f"{accepted}, got {value} of type {type(value)} for option {self.name}."

    def add_choice(self, choice: str) -> None:
        """Accept another string; choices that are accepted already are unchanged."""
        if self.choices is None:
            raise ValueError(f"option {self.name} is not restricted to a set of strings")
        if choice not in self.choices:
            self.choices = (*self.choices, choice)

    def __repr__(self) -> str:
        return f"Option({self.name!r}, {self.kind.__name__}, default={self.default!r})"


def _article(kind: type) -> str:
    return "an integer" if kind is int else "a number"


_GUARD_LEVELS: Final = ("allow", "log", "disallow", "log_explicit", "disallow_explicit")
_PRECISIONS: Final = (
    "default", "high", "highest", "bfloat16", "tensorfloat32", "float32",
    "ANY_F8_ANY_F8_F32", "ANY_F8_ANY_F8_F32_FAST_ACCUM",
    "ANY_F8_ANY_F8_ANY", "ANY_F8_ANY_F8_ANY_FAST_ACCUM",
    "F16_F16_F16", "F16_F16_F32", "BF16_BF16_BF16", "BF16_BF16_F32",
    "BF16_BF16_F32_X3", "BF16_BF16_F32_X6", "BF16_BF16_F32_X9",
    "TF32_TF32_F32", "TF32_TF32_F32_X3", "F32_F32_F32", "F64_F64_F64",
)  # fmt: skip

OPTIONS: Final[tuple[Option, ...]] = (
    # Semantics of programs.
    Option("enable_x64", bool, False, TRACE,
           "64-bit types exist; otherwise they are narrowed to their 32-bit counterparts"),
    Option("explicit_x64_dtypes", str, "warn", TRACE,
           "effect of an explicit request for a 64-bit dtype while enable_x64 is off",
           choices=("warn", "error", "allow")),
    Option("numpy_dtype_promotion", str, "standard", TRACE,
           "promotion of operands of different dtypes, or an error",
           choices=("standard", "strict")),
    Option("numpy_rank_promotion", str, "allow", TRACE,
           "broadcasting of operands of different rank: silent, with a warning, or an error",
           choices=("allow", "warn", "raise")),
    Option("default_matmul_precision", str, None, TRACE,
           "default precision of matrix products and convolutions",
           choices=_PRECISIONS),
    Option("default_prng_impl", str, "threefry2x32", TRACE,
           "default random bit generator of keys",
           choices=("threefry2x32", "threefry4x32", "rbg", "unsafe_rbg",
                    "philox2x32", "philox4x32")),
    Option("threefry_partitionable", bool, True, TRACE,
           "threefry bits are generated so that each device can generate its own part"),
    Option("threefry_gpu_kernel_lowering", bool, False, TRACE,
           "threefry lowers to a hand-written kernel on GPUs"),
    Option("random_seed_offset", int, 0, TRACE, "added to the seed of every new random key"),
    Option("enable_custom_prng", bool, False, TRACE,
           "functions for raw keys return typed keys instead"),
    Option("legacy_prng_key", str, "allow", TRACE,
           "effect of the use of a raw uint32 key", choices=("allow", "warn", "error")),
    Option("debug_key_reuse", bool, False, TRACE, "using one random key twice raises"),
    Option("softmax_custom_jvp", bool, False, TRACE,
           "softmax has a custom derivative rule"),
    Option("allow_f16_reductions", bool, True, TRACE,
           "reductions may use a 16-bit float as their accumulator"),
    Option("auto_pcast", bool, True, TRACE,
           "values that are the same along a mesh axis are cast automatically if they are combined "
           "with values that vary along it"),
    Option("remove_size_one_mesh_axis_from_type", bool, False, TRACE,
           "mesh axes of size 1 are not shown in types"),
    Option("use_direct_linearize", bool, True, TRACE,
           "linearize in one pass instead of jvp and partial evaluation"),
    Option("disable_bwd_checks", bool, False, TRACE,
           "cotangents returned by custom_vjp rules are not checked"),
    Option("mutable_array_checks", bool, True, TRACE, "aliased mutable references raise"),
    Option("check_tracer_leaks", bool, False, TRACE,
           "a tracer that outlives its trace raises when the trace ends"),
    # Execution.
    Option("disable_jit", bool, False, DISPATCH, "jit runs its function operation by operation"),
    Option("debug_nans", bool, False, DISPATCH, "a NaN in a result raises FloatingPointError"),
    Option("debug_infs", bool, False, DISPATCH, "an infinity in a result raises"),
    Option("default_device", object, None, DISPATCH,
           "device, or platform name, of computations with uncommitted arguments"),
    Option("default_placement", object, None, DISPATCH,
           "a sharding over the devices of computations without committed arguments"),
    Option("no_tracing", bool, False, DISPATCH, "tracing a function raises"),
    Option("no_execution", bool, False, DISPATCH, "running an executable raises"),
    Option("transfer_guard", str, None, DISPATCH,
           "guard on copies between host and device and between devices", choices=_GUARD_LEVELS),
    Option("transfer_guard_host_to_device", str, None, DISPATCH,
           "guard on copies from the host", choices=_GUARD_LEVELS),
    Option("transfer_guard_device_to_host", str, None, DISPATCH,
           "guard on copies to the host", choices=_GUARD_LEVELS),
    Option("transfer_guard_device_to_device", str, None, DISPATCH,
           "guard on copies between devices", choices=_GUARD_LEVELS),
    # Checks and logs.
    Option("enable_checks", bool, False, NONE, "jaxprs are type-checked after each pass"),
    Option("log_compiles", bool, False, NONE, "each compilation is logged as a warning"),
    Option("compilation_progress", str, "auto", NONE,
           "a line on stderr while a compilation takes longer than 3 seconds; auto: on terminals "
           "and in notebooks", choices=("auto", "on", "off")),
    Option("explain_cache_misses", bool, False, NONE, "the reason of each jit retrace is logged"),
    Option("traceback_filtering", str, "auto", NONE,
           "treatment of the library's own frames in a traceback",
           choices=("off", "tracebackhide", "hide_frames", "remove_frames",
                    "quiet_remove_frames", "auto")),
    Option("tracer_error_num_traceback_frames", int, 5, NONE,
           "number of frames that a tracer error shows of the origin of a tracer"),
    Option("pprint_use_color", bool, True, NONE, "printed jaxprs are coloured on terminals"),
    Option("captured_constants_warn_bytes", int, 2_000_000_000, NONE,
           "warn if a jaxpr closes over at least this many bytes of constants"),
    Option("embedded_constants_max_bytes", int, 32, NONE,
           "larger constants are arguments of an executable instead of being embedded in it"),
    Option("thread_guard", bool, False, NONE, "using a device from two threads raises"),
    Option("array_garbage_collection_guard", str, None, NONE,
           "effect of a garbage-collected reference cycle with an array",
           choices=("allow", "log", "fatal")),
    # Backends and caches.
    Option("platforms", str, None, NONE,
           "platforms to start, in order of preference, comma-separated"),
    Option("num_cpu_devices", int, -1, NONE, "number of CPU devices; -1 leaves it to XLA_FLAGS"),
    Option("cpu_enable_async_dispatch", bool, True, NONE, "CPU executables run asynchronously"),
    Option("enable_compilation_cache", bool, True, NONE, "executables are cached on disk"),
    Option("compilation_cache_dir", str, None, NONE, "folder of the cache on disk"),
    Option("compilation_cache_max_size", int, -1, NONE,
           "maximum size of the cache on disk in bytes; -1 is the library's default"),
    Option("persistent_cache_min_compile_time_secs", float, 0.0, NONE,
           "executables that compile faster are not stored, if the cache supports it"),
    Option("persistent_cache_min_entry_size_bytes", int, 0, NONE,
           "smaller executables are not stored"),
    Option("compilation_cache_include_metadata_in_key", bool, False, NONE,
           "programs from different source lines do not share an executable"),
)  # fmt: skip
"""Every option of the core. Other wheels register theirs with `config.define`."""
