"""Registration of native functions with XLA, and with plugins of other platforms.

A registration is recorded first and starts nothing. It reaches XLA when an executable needs the
name, see ``custom_calls``: XLA's own table for the CPU, the plugin's table for other platforms.
"""

from __future__ import annotations

import ctypes
import importlib.util
import pathlib
import threading
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from .._base.locks import new_lock
from .._base.source import summarize_function
from . import custom_calls, plugins
from .jaxlib_versions import JAXLIB_VERSION, _jax

STAGES: Final = ("instantiate", "prepare", "initialize", "execute")

_PLATFORMS: Final = {"cpu": "Host", "cuda": "CUDA", "rocm": "ROCM"}
"""XLA's names of the platforms whose handlers can be registered."""

_LEGACY_NAME: Final = b"xla._CUSTOM_CALL_TARGET"
"""Name of the capsules of functions that are not typed handlers."""


class _Target(NamedTuple):
    """A registered function: its handler, or those of its stages, or a :class:`_Deferred`."""

    handlers: Any
    api_version: int
    traits: int


_targets: Final[dict[tuple[str, str], _Target]] = {}
_types: Final[dict[tuple[str, str], Any]] = {}
_partitionable: Final[set[str]] = set()
_done: Final[set[tuple[Any, ...]]] = set()
"""Registrations that XLA or a plugin has."""


def register(
    name: str,
    handler: Any = None,
    *,
    load: Callable[[], Any] | None = None,
    platform: str = "cpu",
    api_version: int = 1,
    traits: int = 0,
) -> None:
    """Register a native function for the custom calls of a target.

    Nothing is started: XLA receives the function when a program that calls it is compiled, or
    loaded from the disk.

    Args:
      name: the name of the target. It belongs to the process, so begin it with that of the package.
      handler: a capsule (``PyCapsule``) with the address of the function, a function of a
        ``ctypes`` library, or a dictionary of these by stage: ``instantiate``, ``prepare``,
        ``initialize``, ``execute``. A CPU calls the first and the last.
      load: instead of a handler, a function without arguments that returns it, for handlers that
        are compiled or downloaded. It is called once, by the first thread that compiles a program
        with the name or loads one from the disk; tracing and lowering do not call it. An error of
        it is raised there with a note, and the next program calls it again.
      platform: ``cpu``, ``cuda``, ``rocm``, or ``gpu`` for the last two.
      api_version: 1 for typed handlers (``XLA_FFI_DEFINE_HANDLER``), 0 for functions of the earlier
        interfaces.
      traits: the sum of the handler's traits; 1 is "can be captured in a command buffer".

    Returns:
      ``None``.

    Raises:
      TypeError, ValueError: if the name is registered with another handler, or an argument is not
        valid.
    """
    _check_name(name, "native function")
    if api_version not in (0, 1):
        raise ValueError(
            f"api_version of the native function {name!r} is {api_version!r}: it is 1 for typed "
            "handlers, 0 for earlier interfaces (the api_version of a call is another number)"
        )
    if load is None:
        handlers = _handlers_of(name, handler, api_version)
    elif handler is None and callable(load):
        handlers = _Deferred(name, load, api_version)
    else:
        raise TypeError(
            f"the native function {name!r} is registered with the handler {handler!r} and "
            f"load={load!r}: pass a handler, or load=, a function that returns it"
        )
    target = _Target(handlers, api_version, int(traits))
    with custom_calls.lock:
        for own in _platforms(platform):
            present = _targets.get((name, own))
            if present is None and custom_calls.is_provided(name) and not platforms_of(name):
                raise ValueError(
                    f"the name {name!r} is used by provides_custom_calls: choose another one"
                )
            if present is not None and not _same(present, target):
                raise ValueError(
                    f"the native function {name!r} is registered for {own} with another handler: "
                    "begin its name with that of your package"
                )
            _targets.setdefault((name, own), target)
        if not custom_calls.is_provided(name):
            custom_calls.provides_custom_calls(name)(lambda: _register_now(name))
        if load is not None:
            custom_calls.load_before(name, lambda: _load(name))
        renew()


def register_type(name: str, type_id: Any, type_info: Any = None, *, platform: str = "cpu") -> None:
    """Register the type of the state that handlers keep between stages.

    Args:
      name: the name of the type.
      type_id: capsule of the type's number (``XLA_FFI_TypeId*``), which XLA sets.
      type_info: capsule of the type's functions (``XLA_FFI_TypeInfo*``), with the deleter.
      platform: ``cpu``, ``cuda``, ``rocm``, or ``gpu`` for the last two.

    Returns:
      ``None``.

    Raises:
      ValueError: if the name is registered with other capsules.

    A handler with state has a stage ``instantiate`` that creates an object of the type; XLA frees
    it with the executable. The capsules come from the native library.

    >>> from primax_core.extend.native import register_type
    >>> def load(library):
    ...     register_type("acme_state", library.state_id(), library.state_info())
    """
    _check_name(name, "native type")
    parts = {"type_id": type_id, "type_info": type_info}
    registration = {k: _capsule(f"{k} of {name!r}", v) for k, v in parts.items() if v is not None}
    with custom_calls.lock:
        for own in _platforms(platform):
            present = _types.setdefault((name, own), registration)
            if _addresses(present) != _addresses(registration):
                raise ValueError(
                    f"the native type {name!r} is registered for {own} with other capsules"
                )
        renew()


def batch_partitionable(name: str) -> None:
    """Declare that a native function treats the examples along leading axes independently.

    XLA may then divide those axes among devices, instead of gathering the operands.

    Args:
      name: the name of the native function.

    Returns:
      ``None``.

    The declaration concerns executables over several devices only; it must be made before they
    are compiled.

    >>> from primax_core.extend.native import batch_partitionable
    >>> batch_partitionable("acme_rows")
    """
    _check_name(name, "native function")
    with custom_calls.lock:
        _partitionable.add(name)
        renew()


def include_dir() -> str:
    """The folder of jaxlib's C and C++ headers, ``xla/ffi/api/ffi.h`` and others.

    Returns:
      An absolute path. Build tools pass it to the compiler: ``-I`` and this path.

    Raises:
      ImportError: if jaxlib is not installed, or without its headers.

    The headers have no dependency but the standard library.

    >>> import os
    >>> from primax_core.extend.native import include_dir
    >>> os.path.exists(os.path.join(include_dir(), "xla", "ffi", "api", "ffi.h"))
    True
    """
    spec = importlib.util.find_spec("jaxlib")
    if spec is None or spec.origin is None:
        raise ImportError("jaxlib is not installed: pip install 'jaxlib>=0.10.2,<0.13'")
    folder = pathlib.Path(spec.origin).parent / "include"
    if not folder.is_dir():
        raise ImportError(f"this installation of jaxlib has no headers: {folder} does not exist")
    return str(folder)


def platforms_of(name: str) -> list[str]:
    """The platforms that a native function is registered for."""
    return [p for n, p in _targets if n == name]


def is_registered(name: str) -> bool:
    """Return True if a native function of a name can be called.

    Args:
      name: the name of the native function.

    Returns:
      A bool: whether it is registered for some platform, by ``register`` or
      ``provides_custom_calls``, or XLA has it for the CPU.

    Nothing is loaded by the question.

    >>> from primax_core.extend.native import is_registered
    >>> is_registered("acme_missing")
    False
    """
    return custom_calls.is_provided(name) or custom_calls.is_known_to_xla(name)


def check_registered(name: str, platform: str, typed: bool) -> None:
    """Raise an error if a target is registered, but not for this platform and interface.

    One that is not registered at all may be before the program is compiled.

    Raises:
      NotImplementedError: in this case.
    """
    target = _targets.get((name, platform))
    known = platforms_of(name)
    if target is None and known:
        raise NotImplementedError(
            f"the native function {name!r} is registered for {', '.join(known)}, but called on "
            f"{platform}: register it with platform={platform!r}, or use lower.on({known[0]!r})"
        )
    if target is not None and typed != (target.api_version == 1):
        uses, has = ("a typed handler", "an earlier interface")[:: 1 if typed else -1]
        raise NotImplementedError(
            f"the native function {name!r} is called as {uses} (api_version of the call), but "
            f"registered as {has} (api_version of the registration)"
        )


def renew() -> None:
    """Let the next executable that needs one of the functions register what is new."""
    custom_calls.renew([name for name, _ in _targets])


def _load(name: str) -> None:
    """Call the functions that make the handlers of a name, for the CPU and plugins that run."""
    for platform in _PLATFORMS:
        target = _targets.get((name, platform))
        if target is not None and isinstance(target.handlers, _Deferred):
            if platform == "cpu" or plugins.running(platform):
                target.handlers.load_once()


def _register_now(name: str) -> bool:
    """Register a name with XLA and with all plugins that run.

    Returns:
      False if a handler that was registered meanwhile must be loaded before.
    """
    for platform in _PLATFORMS:
        for api, extension in [(None, None)] if platform == "cpu" else plugins.running(platform):
            for (own, where), registration in _types.items():
                if where == platform:
                    _once(("type", own, platform, api), _type, own, registration, api, extension)
            target = _targets.get((name, platform))
            if target is not None:
                if isinstance(target.handlers, _Deferred):
                    if target.handlers.loaded is None:
                        return False
                    target = target._replace(handlers=target.handlers.loaded)
                key = ("target", name, platform, api)
                _once(key, _target, name, target, platform, api, extension)
                if name in _partitionable:
                    register = _jax.register_custom_call_as_batch_partitionable
                    _once(("partitionable", name, platform, api), register, name, api)
    return True


def _once(key: tuple[Any, ...], register: Any, name: str, *args: Any) -> None:
    if key in _done:
        return
    try:
        register(name, *args)
    except Exception as e:
        raise RuntimeError(
            f"XLA refused the native {key[0]} {name!r} for {key[2]}: {e}\nIf it was built with "
            "headers of another version, build it with those of the oldest supported jaxlib; this "
            f"is jaxlib {'.'.join(map(str, JAXLIB_VERSION))}. If another package uses the name, "
            "choose another one"
        ) from e
    _done.add(key)


def _type(name: str, registration: Any, api: Any, extension: Any) -> None:
    if api is None:
        _jax.register_custom_type(name, registration)
    else:
        extension.register_custom_type(api, name, registration)


def _target(name: str, target: _Target, platform: str, api: Any, extension: Any) -> None:
    args = (name, target.handlers, _PLATFORMS[platform], target.api_version, target.traits)
    if api is None:
        _jax.register_custom_call_target(*args)
    else:
        extension.register_custom_call_target(api, *args)


# Handlers


class _Deferred:
    """A handler that a function makes when a program first needs it.

    Attributes:
      function: the function.
      loaded: the capsule of the handler, or those of its stages; ``None`` before.
    """

    def __init__(self, name: str, function: Callable[[], Any], api_version: int) -> None:
        self.function, self.loaded = function, None
        self._name, self._api_version = name, api_version
        self._lock = new_lock()
        self._thread: int | None = None
        self._result: Any = None  # the owner of the handler's memory

    def load_once(self) -> None:
        """Call the function if no thread has done so, or wait for the thread that does."""
        if self.loaded is None and self._thread == threading.get_ident():
            raise RuntimeError(
                f"load of the native function {self._name!r} runs a program that needs this "
                "function: it makes the handler without it"
            )
        with self._lock:
            if self.loaded is not None:
                return
            self._thread = threading.get_ident()
            try:
                self._result = self.function()
                self.loaded = _handlers_of(self._name, self._result, self._api_version)
            except Exception as error:
                error.add_note(
                    f"raised while a program loads the native function {self._name!r} by "
                    f"{summarize_function(self.function)}"
                )
                raise
            finally:
                self._thread = None


def _check_name(name: Any, what: str) -> None:
    if not isinstance(name, str) or not name or not name.isprintable():
        raise ValueError(f"the name of a {what} is a printable text, not {name!r}")


def _platforms(platform: str) -> tuple[str, ...]:
    own = tuple(p for p in plugins.platforms_named(platform) if p in _PLATFORMS)
    if platform == "gpu" or platform in own:
        return own
    raise ValueError(
        f"native functions cannot be registered for {platform!r}: the platforms are "
        f"{', '.join(_PLATFORMS)} and gpu"
    )


def _handlers_of(name: str, handler: Any, api_version: int) -> Any:
    if not isinstance(handler, Mapping):
        return _capsule(f"the handler of {name!r}", handler, api_version)
    unknown = [s for s in handler if s not in STAGES]
    if unknown or "execute" not in handler or api_version != 1:
        raise ValueError(
            f"the handlers of {name!r} are a dictionary with the stages {list(handler)}: the "
            f"stages are {', '.join(STAGES)}, of which execute is required, and api_version is 1"
        )
    return {s: _capsule(f"stage {s} of {name!r}", h, api_version) for s, h in handler.items()}


def _capsule(what: str, value: Any, api_version: int | None = None) -> Any:
    """A capsule of an address."""
    name = _LEGACY_NAME if api_version == 0 else None
    if isinstance(value, ctypes._CFuncPtr):
        new = ctypes.pythonapi.PyCapsule_New
        new.restype = ctypes.py_object
        new.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
        return new(ctypes.cast(value, ctypes.c_void_p), name, None)
    if type(value).__name__ != "PyCapsule":
        raise TypeError(
            f"{what} is a {type(value).__name__}, but it is to be a capsule (PyCapsule) or a "
            "function of a ctypes library"
        )
    has_legacy_name = _name_of(value) == _LEGACY_NAME
    if api_version is not None and has_legacy_name != (api_version == 0):
        is_a = "a function of an earlier interface" if has_legacy_name else "a typed handler"
        raise ValueError(
            f"{what} is the capsule of {is_a}, to judge by its name {_name_of(value)!r}: register "
            f"it with api_version={0 if has_legacy_name else 1} (XLA would call it wrongly)"
        )
    return value


def _name_of(capsule: Any) -> bytes | None:
    get = ctypes.pythonapi.PyCapsule_GetName
    get.restype, get.argtypes = ctypes.c_char_p, (ctypes.py_object,)
    return get(capsule)


def _addresses(handlers: Any) -> Any:
    """The addresses in a handler, or in the dictionary of several."""
    if isinstance(handlers, Mapping):
        return {k: _addresses(h) for k, h in handlers.items()}
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    return get(handlers, _name_of(handlers))


def _same(a: _Target, b: _Target) -> bool:
    if isinstance(a.handlers, _Deferred) and isinstance(b.handlers, _Deferred):
        return a[1:] == b[1:] and a.handlers.function == b.handlers.function
    if isinstance(a.handlers, _Deferred) or isinstance(b.handlers, _Deferred):
        return False
    return a[1:] == b[1:] and _addresses(a.handlers) == _addresses(b.handlers)
