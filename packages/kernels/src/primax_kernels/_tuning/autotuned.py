"""Functions whose configuration is chosen by measurement."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, overload

from primax_core import default_device, device_put, jit, tree_util
from primax_core.extend import current_trace
from primax_core.extend.runtime import define_option, new_lock

from . import store, tables
from .candidates import Candidate, compare_all, compile_all, concrete, lower_all, time_all
from .configs import default_config, described, expanded_configs, text_of
from .identity import Identity, device_name, device_of_calls, key_text, name_of, source_of, versions
from .records import Record

_Configs: TypeAlias = Sequence[Any] | Mapping[str, Sequence[Any]] | Callable[..., Any]
_Key: TypeAlias = Sequence[str] | Callable[..., Any] | None

tune_kernels: Final[Any] = define_option(
    "tune_kernels",
    bool,
    False,
    "none",
    "calls of functions of autotune on concrete arrays measure if there is no result yet",
)
"""The option, and a context manager that sets it: ``with tune_kernels(True): ...``."""


@dataclass(frozen=True)
class Measured:
    """A configuration in a `TuningResult`.

    Attributes:
      config: the configuration.
      seconds: its least time, or ``None`` if it was left out.
      reason: why it was left out or measured in fewer rounds; empty otherwise.
      samples: seconds of each round.
    """

    config: Mapping[str, Any]
    seconds: float | None
    reason: str
    samples: tuple[float, ...]


@dataclass(frozen=True)
class TuningResult:
    """The fastest configuration of a call, with all others.

    Printed, it is a table of all configurations, the fastest first.

    Attributes:
      config: the fastest configuration.
      seconds: its least time.
      measured: all configurations, the fastest first; those that were left out are last.
      kernel, key, device: what it applies to.
    """

    config: Mapping[str, Any]
    seconds: float
    measured: tuple[Measured, ...]
    kernel: str
    key: str
    device: str

    def __str__(self) -> str:
        lines = [f"{self.kernel}({self.key}) on {self.device}"]
        for m in self.measured:
            time = "" if m.seconds is None else f"{m.seconds * 1e6:.1f} us"
            note = f"  ({m.reason})" if m.reason else ""
            lines.append(f"{time:>14}  {described(m.config)}{note}")
        return "\n".join(lines)


class Autotuned:
    """A function with a configuration for each kind of call; `autotune` makes it."""

    def __init__(
        self, fun: Callable[..., Any], configs: Any, key: Any, default: Any, name: str | None,
        rtol: float | None, atol: float | None, source: str | None = None,
    ):  # fmt: skip
        functools.update_wrapper(self, fun)
        self._fun = fun
        self._configs = configs
        self._key = key
        self._default = default
        self._tolerances = None if rtol is None and atol is None else (rtol or 0.0, atol or 0.0)
        self.name: str = name_of(fun) if name is None else name
        self._source = source_of(fun) if source is None else source
        self._lock = new_lock()
        self._records: dict[Identity, Record | None] = {}
        self._choices: dict[Any, tuple[Mapping[str, Any], str]] = {}
        self._compiled: dict[Any, Callable[..., Any]] = {}

    def __repr__(self) -> str:
        return f"<autotuned {self.name}>"

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """Refuse use as a method: arguments are arrays."""
        if instance is None:
            return self
        raise TypeError(
            f"{self.name} is a method: autotune takes functions of arrays; call one from the method"
        )

    def __call__(self, *args: Any, **options: Any) -> Any:
        config, origin = self._choice(args, options)
        if origin == "default" and tune_kernels.value and current_trace() is None:
            config = self.tune(*args, **options).config
            origin = "measurement"
        if both := config.keys() & options.keys():
            raise TypeError(
                f"{self.name} is called with {', '.join(sorted(both))}, which configurations "
                "choose: leave it out, or call the function without tuning (__wrapped__)"
            )
        try:
            if current_trace() is not None:
                return self._fun(*args, **options, **config)
            return self._jitted(config, options)(*args)
        except Exception as error:
            error.add_note(f"{self.name} was called with {described(config)} (origin: {origin})")
            raise

    def config(self, *args: Any, **options: Any) -> dict[str, Any]:
        """The configuration that a call with these arguments uses.

        Arguments may also be `ShapeDtypeStruct`. Nothing is measured.
        """
        return dict(self._choice(args, options)[0])

    def config_origin(self, *args: Any, **options: Any) -> str:
        """The origin of `config`: ``"table"``, ``"measurement"`` or ``"default"``."""
        return self._choice(args, options)[1]

    def _jitted(self, config: Mapping[str, Any], options: Mapping[str, Any]) -> Callable[..., Any]:
        """The jitted function of one configuration, so that eager calls compile once."""
        key = text_of(config), tuple(sorted(options.items()))
        try:
            jitted = self._compiled.get(key)
        except TypeError:
            raise TypeError(
                f"{self.name}: arguments by name are options and must be hashable, got {options}; "
                "pass arrays by position"
            ) from None
        if jitted is None:
            call = functools.partial(self._fun, **options, **config)
            functools.update_wrapper(call, self._fun)
            jitted = self._compiled[key] = jit(call)
        return jitted

    def _identity(self, args: Sequence[Any], options: Mapping[str, Any]) -> Identity:
        text = key_text(self._key, self._fun, args, options)
        return Identity(self.name, self._source, text, device_name(), versions())

    def _choice(
        self, args: Sequence[Any], options: Mapping[str, Any]
    ) -> tuple[Mapping[str, Any], str]:
        """The configuration of a call, and its origin."""
        if callable(self._key) or callable(self._configs) or callable(self._default):
            return self._searched(args, options)
        signature = self._signature(args, options)
        try:
            choice = self._choices.get(signature)
        except TypeError:  # options that cannot be hashed
            return self._searched(args, options)
        if choice is None:
            choice = self._choices[signature] = self._searched(args, options)
        return choice

    def _signature(self, args: Sequence[Any], options: Mapping[str, Any]) -> Any:
        """A key of `_choices`, which costs less than the texts of an identity."""
        leaves, tree = tree_util.tree_flatten(args)
        types = [(x.shape, x.dtype) if hasattr(x, "dtype") else type(x) for x in leaves]
        return tree, *types, *sorted(options.items()), tables.generation(), default_device.value

    def _searched(
        self, args: Sequence[Any], options: Mapping[str, Any]
    ) -> tuple[Mapping[str, Any], str]:
        identity = self._identity(args, options)
        record = tables.look_up(identity.kernel, identity.key, identity.device)
        if record is not None:
            return record.config, "table"
        if identity not in self._records:
            self._records[identity] = store.read(identity)
        record = self._records[identity]
        if record is not None:
            return record.config, "measurement"
        listed = functools.partial(expanded_configs, self._configs, args, options)
        return default_config(self._default, listed, args, options), "default"

    def tune(
        self, *args: Any, rounds: int = 12, seconds: float = 5.0, **options: Any
    ) -> TuningResult:
        """Measure all configurations for these arguments, and store the fastest.

        Later calls with arguments of the same shapes and dtypes use it, also in later processes.

        Args:
          args: arrays, or `ShapeDtypeStruct`, for which normally distributed numbers and zeros are
            used.
          rounds: samples of each configuration that is not clearly slower than others.
          seconds: time after which no further round begins.
          options: the arguments by name.

        Raises:
          TypeError: for traced arguments.
          RuntimeError: if no configuration is valid; its cause is the error of the first.
        """
        arrays = device_put(concrete(args), device_of_calls())
        identity = self._identity(args, options)
        configs = expanded_configs(self._configs, args, options)
        candidates = [Candidate(c) for c in configs]
        with self._lock:
            lower_all(candidates, self._fun, arrays, options)
            compile_all(candidates)
            if self._tolerances is not None:
                compare_all(candidates, arrays, *self._tolerances)
            time_all(candidates, arrays, rounds=rounds, seconds=seconds)
        result = self._result(identity, candidates)
        record = Record(identity, dict(result.config), result.seconds)
        self._records[identity] = record
        self._choices.clear()
        store.write(record)
        return result

    def _result(self, identity: Identity, candidates: Sequence[Candidate]) -> TuningResult:
        measured = sorted(map(_measured, candidates), key=_order)
        best = measured[0]
        if best.seconds is None:
            reasons = "\n".join(f"  {described(m.config)}: {m.reason}" for m in measured)
            raise RuntimeError(
                f"no configuration of {self.name} can be used for ({identity.key}):\n{reasons}"
            ) from next((c.error for c in candidates if c.error is not None), None)
        return TuningResult(
            best.config, best.seconds, tuple(measured), identity.kernel, identity.key,
            identity.device,
        )  # fmt: skip

    def records(self) -> list[Record]:
        """The results of this process, measured or read from disk."""
        return [r for r in self._records.values() if r is not None]


def _measured(candidate: Candidate) -> Measured:
    timing = candidate.timing
    if timing is None:
        return Measured(candidate.config, None, candidate.reason, ())
    reason = f"slower, stopped after {len(timing.samples)} rounds" if timing.stopped else ""
    return Measured(candidate.config, timing.best, reason, tuple(timing.samples))


def _order(m: Measured) -> tuple[bool, float]:
    return m.seconds is None, m.seconds or 0.0


@overload
def autotune(
    fun: Callable[..., Any], *, configs: _Configs, key: _Key = None, default: Any = None,
    name: str | None = None, rtol: float | None = None, atol: float | None = None,
) -> Autotuned: ...  # fmt: skip


@overload
def autotune(
    fun: None = None, *, configs: _Configs, key: _Key = None, default: Any = None,
    name: str | None = None, rtol: float | None = None, atol: float | None = None,
) -> Callable[[Callable[..., Any]], Autotuned]: ...  # fmt: skip


def autotune(
    fun: Callable[..., Any] | None = None, *, configs: _Configs, key: _Key = None,
    default: Any = None, name: str | None = None, rtol: float | None = None,
    atol: float | None = None,
) -> Any:  # fmt: skip
    """A function whose block sizes and compiler parameters are chosen by measurement.

    Nothing is measured unless ``tune`` of the result is called, or the option `tune_kernels` is
    set. A call uses the configuration of a loaded table (`load_table`), else the stored result of
    an earlier measurement, else ``default``. Under ``jit``, ``grad`` and ``vmap`` it does the same
    while tracing, so a jitted function that was traced before a measurement keeps its
    configuration.

    Args:
      fun: function of arrays by position, options by name, and the parameters of a configuration
        by name. Without it, the result is a decorator.
      configs: a sequence of mappings (or ``triton.Config``); a mapping from names to sequences of
        values, of which all combinations are tried; or a function of the call's arguments that
        returns either. Configurations that raise an error when they are traced, lowered or
        compiled are left out.
      key: arguments that a result depends on: ``None`` for shapes and dtypes of all arrays and all
        options, a sequence of names, or a function of the call's arguments that returns numbers,
        strings or tuples of them.
      default: the configuration of calls without a result, or a function of the call's arguments
        that returns it; by default the first of ``configs``.
      name: name in tables and on disk, by default the module and name of ``fun``.
      rtol, atol: relative and absolute tolerances. With one of them, configurations whose results
        differ from those of the first valid one are left out.

    Returns:
      An `Autotuned` with the methods ``tune(*args, **options)``, which measures and returns a
      `TuningResult`, and ``config(*args, **options)``.

    Raises:
      TypeError, ValueError: if ``fun`` is no function, or ``key`` no key. Errors of configurations
        are raised by the call.

    >>> import numpy as np
    >>> from primax_core import ShapeDtypeStruct
    >>> from primax_kernels import BlockSpec, pallas_call
    >>> @autotune(configs={"rows": (8, 4, 3)})
    ... def double(x, *, rows):
    ...     def kernel(x_ref, o_ref):
    ...         o_ref[...] = 2 * x_ref[...]
    ...
    ...     block = BlockSpec((rows,), lambda i: i)
    ...     return pallas_call(
    ...         kernel,
    ...         ShapeDtypeStruct(x.shape, x.dtype),
    ...         grid=x.shape[0] // rows,
    ...         in_specs=[block],
    ...         out_specs=block,
    ...     )(x)
    >>> double.config(np.ones(16, np.float32))
    {'rows': 8}
    """
    if fun is None:
        return functools.partial(
            autotune, configs=configs, key=key, default=default, name=name, rtol=rtol, atol=atol
        )
    if not callable(fun):
        raise TypeError(f"autotune takes a function of arrays, got {fun!r}")
    names = isinstance(key, Sequence) and not isinstance(key, str)
    if not (key is None or callable(key) or (names and all(isinstance(k, str) for k in key))):
        raise TypeError(f"key is None, a function, or a sequence of names, got {key!r}")
    return Autotuned(fun, configs, key, default, name, rtol, atol)


def export_table(path: str | os.PathLike[str], functions: Iterable[Autotuned]) -> int:
    """Write the results of functions into a table that ships with a package.

    Entries of the file for other calls and kinds of devices are kept, so that a table grows on
    several machines.

    Args:
      path: the file.
      functions: functions of `autotune`; those of their results are written that this process
        measured or used.

    Returns:
      The number of entries of the file.

    Raises:
      TypeError: for other functions.
      ValueError: if there are no results, or the file has other contents.
    """
    records: list[Record] = []
    for f in functions:
        if not isinstance(f, Autotuned):
            raise TypeError(f"export_table takes functions of autotune, got {f!r}")
        records += f.records()
    if not records:
        raise ValueError("there are no results to export: call tune first")
    return tables.write_table(path, records)
