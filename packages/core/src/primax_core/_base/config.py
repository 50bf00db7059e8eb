"""Configuration: effective option values of each thread, and the keys that caches use.

`state` is thread-local. Every option is an attribute of it with the value in effect in the current
thread, so ``state.enable_x64`` is one attribute read. Two more attributes are keys for all options:

- ``state.key`` is equal, and identical, if every option that can change the result of a call is
  equal. It is a key of the caches of executables and dispatch decisions.
- ``state.trace_key`` is the same for the options that can change a traced jaxpr.

Both are interned objects, hashed by identity, and change only if such an option changes.

>>> from primax_core._base import config
>>> before = config.trace_key()
>>> with config.enable_x64(True):
...     config.state.enable_x64, config.trace_key() is before
(True, False)
>>> config.trace_key() is before
True
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import wraps
from typing import Any, Final, NoReturn, TypeVar

from .locks import new_rlock
from .options import DISPATCH, NONE, OPTIONS, TRACE, Option
from .weak_sets import members

_F = TypeVar("_F", bound=Callable[..., Any])
_MISSING: Final = object()

_lock: Final = new_rlock()
_options: Final[dict[str, Option]] = {}
_globals: Final[dict[str, Any]] = {}
_listeners: Final[dict[str, list[Callable[[Any], None]]]] = {}
_trace_names: list[str] = []
_dispatch_names: list[str] = []
_interned: Final[dict[Any, Any]] = {}


class TraceKey:
    """The settings that can change a traced jaxpr; one object for equal settings."""

    __slots__ = ("__weakref__", "values")

    def __init__(self, values: tuple[Any, ...]) -> None:
        self.values: tuple[Any, ...] = values

    def __repr__(self) -> str:
        return f"TraceKey({_differences(_trace_names, self.values)})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("configuration keys belong to one process and cannot be pickled")


class DispatchKey:
    """The settings that can change the result of a call; one object for equal settings."""

    __slots__ = ("__weakref__", "moves", "trace", "values")

    def __init__(self, trace: TraceKey, values: tuple[Any, ...]) -> None:
        self.trace: TraceKey = trace
        self.values: tuple[Any, ...] = values
        self.moves: dict[tuple[str, Any], DispatchKey] = {}  # keys after one change of an option

    def __repr__(self) -> str:
        own = _differences(_dispatch_names, self.values)
        return f"DispatchKey({', '.join(filter(None, (repr(self.trace), own)))})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("configuration keys belong to one process and cannot be pickled")


def _differences(names: list[str], values: tuple[Any, ...]) -> str:
    changed = (
        f"{name}={value!r}"
        for name, value in zip(names, values, strict=False)
        if value != _options[name].default
    )
    return ", ".join(changed)


def changed_options(a: TraceKey, b: TraceKey) -> list[tuple[str, Any, Any]]:
    """Names of the options in which two keys differ, with the values in each."""
    pairs = zip(_trace_names, a.values, b.values, strict=False)
    return [(name, x, y) for name, x, y in pairs if x != y]


class _Thread:
    """Access to one thread's values, for global updates."""

    __slots__ = ("__weakref__", "overrides", "values")

    def __init__(self, values: dict[str, Any]) -> None:
        self.values = values
        self.overrides: dict[str, Any] = {}


_threads: Final[weakref.WeakSet[_Thread]] = weakref.WeakSet()


class _State(threading.local):
    """The values in effect in the current thread. See the module's documentation."""

    key: DispatchKey
    trace_key: TraceKey
    trace: Any = None
    """The current trace, set by the ``_trace`` layer. ``None`` is eager evaluation."""
    name_stack: tuple[str, ...] = ()
    """The enclosing ``named_scope`` names, outermost first."""
    source: Any = None
    """Source location of the interpreted equation; ``None`` in user code."""

    def __init__(self) -> None:
        values = self.__dict__
        with _lock:
            values.update(_globals)
            values["trace"] = None
            values["name_stack"] = ()
            values["source"] = None
            values["_thread"] = thread = _Thread(values)
            _refresh_keys(values)
            _threads.add(thread)

    _thread: _Thread

    @property
    def checking_leaks(self) -> bool:
        """The option ``check_tracer_leaks`` under the name of its context manager."""
        return bool(self.check_tracer_leaks)


def _refresh_keys(values: dict[str, Any]) -> None:
    """Recompute a thread's two interned keys from its option values."""
    trace_values = tuple([values[name] for name in _trace_names])
    trace = _interned.get(trace_values)
    if trace is None:
        trace = _interned[trace_values] = TraceKey(trace_values)
    own_values = tuple([values[name] for name in _dispatch_names])
    key = _interned.get((trace, own_values))
    if key is None:
        key = _interned[trace, own_values] = DispatchKey(trace, own_values)
    values["trace_key"] = trace
    values["key"] = key


def _put(values: dict[str, Any], option: Option, value: Any) -> None:
    """Set the effective value of ``option`` in one thread's values."""
    if option.scope is NONE:
        values[option.name] = value
        return
    moves = values["key"].moves
    move = (option.name, value)
    key = moves.get(move)
    values[option.name] = value
    if key is None:
        _refresh_keys(values)
        moves[move] = values["key"]
    else:
        values["key"] = key
        values["trace_key"] = key.trace


def define(option: Option) -> ContextOption:
    """Register an option and return its context manager.

    Its initial value comes from the environment variable `Option.env_var`, or is its default.
    """
    text = os.environ.get(option.env_var)
    value = option.default if text is None else option.parse(text)
    with _lock:
        if option.name in _options:
            raise ValueError(f"option {option.name} is already defined")
        _options[option.name] = option
        _globals[option.name] = value
        if option.scope is TRACE:
            _trace_names.append(option.name)
        elif option.scope is DISPATCH:
            _dispatch_names.append(option.name)
        elif option.scope is not NONE:
            raise ValueError(f"option {option.name}: unknown scope {option.scope!r}")
        _append_to_keys(option.scope, value)
        for thread in members(_threads):
            thread.values[option.name] = value
            _refresh_keys(thread.values)
    return ContextOption(option)


def _append_to_keys(scope: str, value: Any) -> None:
    """Append the value of a new option to all keys.

    What is cached under them does not depend on the option, so they stay valid: a wheel that is
    imported late does not cause retraces.
    """
    keys = [*_interned.values()]
    _interned.clear()
    for key in keys:
        is_trace_key = isinstance(key, TraceKey)
        if scope is (TRACE if is_trace_key else DISPATCH):
            key.values = (*key.values, value)
        _interned[key.values if is_trace_key else (key.trace, key.values)] = key


def renew_keys() -> None:
    """Renew all keys, which invalidates everything cached under the old ones."""
    with _lock:
        _interned.clear()
        for thread in members(_threads):
            _refresh_keys(thread.values)


def _option(name: str) -> Option:
    option = _options.get(name)
    if option is None:
        raise AttributeError(f"Unrecognized config option: {name}")
    return option


def update(name: str, value: Any) -> None:
    """Set an option for every thread that does not override it with a context manager.

    Raises ``AttributeError`` for an unknown option and ``ValueError`` for an invalid value.
    """
    option = _option(name)
    value = option.check(value)
    for listener in _listeners.get(name, ()):
        listener(value)
    with _lock:
        _globals[name] = value
        for thread in members(_threads):
            if name not in thread.overrides:
                _put(thread.values, option, value)


def read(name: str) -> Any:
    """The value in effect in the current thread."""
    _option(name)
    return getattr(state, name)


def read_global(name: str) -> Any:
    """The global value, for threads without an override."""
    _option(name)
    return _globals[name]


def options() -> dict[str, Option]:
    """A copy of the table of options, by name."""
    return dict(_options)


def on_update(name: str, listener: Callable[[Any], None]) -> None:
    """Call ``listener(value)`` before each global update of an option; it may raise to refuse
    it.
    """
    _option(name)
    _listeners.setdefault(name, []).append(listener)


def add_choice(name: str, choice: str) -> None:
    """Accept another string as the value of an option that has a set of choices.

    Args:
      name: the name of the option.
      choice: the string.

    Returns:
      ``None``.

    Raises:
      AttributeError: if there is no such option.

    A wheel that adds an implementation adds its name. A choice that is accepted already changes
    nothing.

    >>> from primax_core._base import config
    >>> config.add_choice("default_prng_impl", "rbg")
    """
    with _lock:
        _option(name).add_choice(choice)


def trace_key() -> TraceKey:
    """The interned key of the settings that can change a traced jaxpr."""
    return state.trace_key


class Override:
    """Sets one option in the current thread for a ``with`` block or a decorated function.

    A :class:`ContextOption` returns it. It can be used several times, also nested; the value
    before the block is restored after it, also if the block raises an error.

    Blocks of generators and coroutines apply while they are suspended, because they belong to the
    thread: leave the block before a ``yield``.

    >>> from primax_core._base.config import debug_nans
    >>> on = debug_nans(True)
    >>> with on:
    ...     debug_nans.value
    True
    >>> debug_nans.value
    False
    """

    __slots__ = ("_option", "_previous", "_value")

    def __init__(self, option: Option, value: Any) -> None:
        self._option = option
        self._value = value
        self._previous: list[Any] = []

    def __enter__(self) -> None:
        option = self._option
        thread = state._thread
        with _lock:
            previous = thread.overrides.get(option.name, _MISSING)
            _put(thread.values, option, self._value)
            thread.overrides[option.name] = self._value
            self._previous.append(previous)

    def __exit__(self, *exc_info: object) -> None:
        option = self._option
        thread = state._thread
        with _lock:
            previous = self._previous.pop()
            if previous is _MISSING:
                del thread.overrides[option.name]
                previous = _globals[option.name]
            else:
                thread.overrides[option.name] = previous
            _put(thread.values, option, previous)

    def __call__(self, fun: _F) -> _F:
        @wraps(fun)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            with Override(self._option, self._value):
                return fun(*args, **kwargs)

        return wrapper  # type: ignore[return-value]


@contextmanager
def inherited(key: TraceKey) -> Iterator[None]:
    """Context manager that applies the settings under which another thread traced a jaxpr."""
    with ExitStack() as stack:
        for name, value, _ in changed_options(key, state.trace_key):
            stack.enter_context(Override(_options[name], value))
        yield


class ContextOption:
    """Factory of context managers that set one option in the current thread.

    Called with a value, it returns an object for a ``with`` block, or for a decorator of a
    function whose calls run in such a block. The value applies to the current thread only;
    ``config.update`` sets an option for all threads. A function that was traced under another
    value is retraced if the option can change its jaxpr. Blocks can be nested.

    Args:
      new_val: the value; by default True, for a boolean option.

    Returns:
      A context manager, which is also a decorator.

    Raises:
      ValueError: for a value that the option does not accept; the message lists the accepted
        ones.
      TypeError: if the value is missing and the option is not boolean.

    The property ``value`` is the value in effect in the current thread.

    >>> from primax_core._base.config import debug_nans, numpy_rank_promotion
    >>> with debug_nans():
    ...     debug_nans.value
    True
    >>> @numpy_rank_promotion("raise")
    ... def f():
    ...     return numpy_rank_promotion.value
    >>> f(), numpy_rank_promotion.value
    ('raise', 'allow')
    """

    __slots__ = ("_option",)

    def __init__(self, option: Option) -> None:
        self._option = option

    @property
    def value(self) -> Any:
        """The value of the option in effect in the current thread."""
        return getattr(state, self._option.name)

    @property
    def __name__(self) -> str:
        return self._option.name

    def __call__(self, new_val: Any = _MISSING) -> Override:
        option = self._option
        if new_val is _MISSING:
            if option.kind is not bool:
                raise TypeError(
                    f"Context manager for {option.name} config option requires an argument "
                    "representing the new value for the config option."
                )
            new_val = True
        return Override(option, option.check(new_val))

    def __repr__(self) -> str:
        return f"<context manager of option {self._option.name}, now {self.value!r}>"


def _define_all() -> dict[str, ContextOption]:
    return {option.name: define(option) for option in OPTIONS}


_context: Final = _define_all()
state: Final = _State()

enable_x64: Final = _context["enable_x64"]
explicit_x64_dtypes: Final = _context["explicit_x64_dtypes"]
numpy_dtype_promotion: Final = _context["numpy_dtype_promotion"]
numpy_rank_promotion: Final = _context["numpy_rank_promotion"]
default_matmul_precision: Final = _context["default_matmul_precision"]
default_prng_impl: Final = _context["default_prng_impl"]
threefry_partitionable: Final = _context["threefry_partitionable"]
threefry_gpu_kernel_lowering: Final = _context["threefry_gpu_kernel_lowering"]
random_seed_offset: Final = _context["random_seed_offset"]
enable_custom_prng: Final = _context["enable_custom_prng"]
legacy_prng_key: Final = _context["legacy_prng_key"]
debug_key_reuse: Final = _context["debug_key_reuse"]
softmax_custom_jvp: Final = _context["softmax_custom_jvp"]
allow_f16_reductions: Final = _context["allow_f16_reductions"]
auto_pcast: Final = _context["auto_pcast"]
remove_size_one_mesh_axis_from_type: Final = _context["remove_size_one_mesh_axis_from_type"]
disable_bwd_checks: Final = _context["disable_bwd_checks"]
check_tracer_leaks: Final = _context["check_tracer_leaks"]
checking_leaks: Final = check_tracer_leaks
disable_jit: Final = _context["disable_jit"]
debug_nans: Final = _context["debug_nans"]
debug_infs: Final = _context["debug_infs"]
default_device: Final = _context["default_device"]
default_placement: Final = _context["default_placement"]
no_tracing: Final = _context["no_tracing"]
no_execution: Final = _context["no_execution"]
transfer_guard: Final = _context["transfer_guard"]
transfer_guard_host_to_device: Final = _context["transfer_guard_host_to_device"]
transfer_guard_device_to_host: Final = _context["transfer_guard_device_to_host"]
transfer_guard_device_to_device: Final = _context["transfer_guard_device_to_device"]
enable_checks: Final = _context["enable_checks"]
log_compiles: Final = _context["log_compiles"]
explain_cache_misses: Final = _context["explain_cache_misses"]
traceback_filtering: Final = _context["traceback_filtering"]
thread_guard: Final = _context["thread_guard"]
array_garbage_collection_guard: Final = _context["array_garbage_collection_guard"]
num_cpu_devices: Final = _context["num_cpu_devices"]
platforms: Final = _context["platforms"]


class Config:
    """The public configuration: read an option as an attribute, set it with `update`.

    Each option has a name, accepted values and a default, and can be set by an environment
    variable, by ``config.update``, and for one thread by a context manager such as
    ``enable_x64``. ``dir(config)`` lists the options.

    Raises:
      AttributeError: for an unknown option, and if an attribute is assigned.

    >>> from primax_core._base.config import config
    >>> config.enable_x64
    False
    >>> config.update("numpy_rank_promotion", "warn")
    >>> config.numpy_rank_promotion
    'warn'
    >>> config.update("numpy_rank_promotion", "allow")
    """

    __slots__ = ()

    def update(self, name: str, value: Any) -> None:
        """Set an option for every thread that does not override it with a context manager.

        Args:
          name: the name of the option.
          value: the value.

        Returns:
          ``None``.

        Raises:
          AttributeError: for an unknown option.
          ValueError: for a value that the option does not accept.

        Functions that were traced under another value are retraced where the option can change
        their jaxprs.

        >>> from primax_core._base.config import config
        >>> config.update("debug_nans", True)
        >>> config.debug_nans
        True
        >>> config.update("debug_nans", False)
        """
        update(name, value)

    def read(self, name: str) -> Any:
        """The global value of an option, for threads without an override.

        Args:
          name: the name of the option.

        Returns:
          The value.

        Raises:
          AttributeError: for an unknown option.

        The value in effect in the current thread is the attribute ``config.<name>``.

        >>> from primax_core._base.config import config, debug_nans
        >>> with debug_nans(True):
        ...     config.read("debug_nans"), config.debug_nans
        (False, True)
        """
        return read_global(name)

    @property
    def values(self) -> dict[str, Any]:
        """The values in effect in the current thread, by name."""
        return {name: getattr(state, name) for name in _options}

    def __getattr__(self, name: str) -> Any:
        return read(name)

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError(f"set the option with config.update({name!r}, {value!r})")

    def __dir__(self) -> list[str]:
        return sorted([*_options, "read", "update", "values"])


config: Final = Config()
