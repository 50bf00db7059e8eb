"""Registration of native functions."""

from __future__ import annotations

import ctypes
import difflib
import importlib.util
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from primax_core.extend import native, summarize

from ._signature_text import as_signature, declared_signatures
from ._signatures import Signature
from ._versions import check_version

_libraries: Final[list[Any]] = []
"""Loaded libraries, whose functions XLA calls until the process ends."""

_names: Final[set[str]] = set()
_signatures: Final[dict[str, Signature]] = {}


def register_ffi_target(
    name: str,
    fn: Any = None,
    platform: str = "cpu",
    api_version: int = 1,
    *,
    load: Callable[[], Any] | None = None,
    traits: int = 0,
    signature: Signature | str | None = None,
) -> None:
    """Register a native function, so that :func:`ffi_call` can call it by name.

    XLA receives it when a program that calls it is compiled, or loaded from the disk: registration
    is cheap, and starts no devices.

    Args:
      name: the name belongs to the whole process, so begin it with that of your package.
      fn: a capsule with the address of a handler, a function of a ``ctypes`` library, or a
        dictionary of these by stage: ``instantiate``, ``prepare``, ``initialize``, ``execute``.
      platform: ``"cpu"``, ``"cuda"``, ``"rocm"``, or ``"gpu"`` for the last two.
      api_version: 1 for typed handlers (``XLA_FFI_DEFINE_HANDLER_SYMBOL``), 0 for functions of
        the earlier interfaces.
      load: instead of ``fn``, a function without arguments that returns it, for handlers that are
        compiled or downloaded. It is called once, when a program with the name is compiled or
        loaded from the disk, not while tracing. Its error is raised there with a note, and so are
        those of handlers that do not fit.
      traits: the sum of the handler's traits; 1 is "can be captured in a command buffer".
      signature: the types of operands, results and attributes, for all platforms, or their text,
        ``"f32[b n], f32[n]; eps: f32 -> f32[b n]"``. Calls are checked while tracing.

    Raises:
      TypeError, ValueError: if the arguments do not fit, or the name has another handler or
        signature.
      RuntimeError: if the handler was built with newer headers than the installed jaxlib's.
    """
    where = _platform(platform)
    if not isinstance(traits, int):
        raise TypeError(f"traits of {name!r} is {traits!r}, not a number")
    if load is None:
        _check_handlers(name, fn, api_version)
    if signature is not None:
        signature = as_signature(signature, f"the signature of {name!r}")
        _check_signature(name, signature, api_version)
    native.register(
        name,
        fn,
        load=_CheckedLoad(name, load, api_version) if callable(load) else load,
        platform=where,
        api_version=api_version,
        traits=traits,
    )
    _names.add(name)
    if signature is not None:
        _signatures[name] = signature


@dataclass(frozen=True)
class _CheckedLoad:
    """A function that makes a handler, which is then checked."""

    name: str
    load: Callable[[], Any]
    api_version: int

    def __call__(self) -> Any:
        handler = self.load()
        _check_handlers(self.name, handler, self.api_version)
        return handler

    @property
    def __wrapped__(self) -> Callable[[], Any]:
        """The function that errors name."""
        return self.load


def signature_of(name: str) -> Signature | None:
    """The signature with which a native function was registered."""
    return _signatures.get(name)


def register_ffi_target_as_batch_partitionable(name: str) -> None:
    """Declare that a native function treats the examples along leading axes independently, so that
    XLA may divide those axes among devices."""
    native.batch_partitionable(name)


def register_ffi_type(
    name: str, type_registration: Mapping[str, Any], platform: str = "cpu"
) -> None:
    """Register the type of the state of handlers (``ffi::State<T>``).

    Args:
      type_registration: capsules of the addresses of ``T::id`` (``"type_id"``) and of its
        ``ffi::TypeInfo`` (``"type_info"``).

    Raises:
      TypeError, ValueError: if the capsules do not fit, or the name has others.
    """
    parts = dict(type_registration) if isinstance(type_registration, Mapping) else {}
    if "type_id" not in parts or {*parts} - {"type_id", "type_info"}:
        raise ValueError(
            f"the registration of the native type {name!r} is {type_registration!r}, but it is to "
            "be a dictionary of capsules, {'type_id': ..., 'type_info': ...}"
        )
    native.register_type(
        name, parts["type_id"], parts.get("type_info"), platform=_platform(platform)
    )


def register_ffi_type_id(name: str, obj: Any, platform: str = "cpu") -> None:
    """Register the type of the state of handlers by the capsule of its number alone."""
    native.register_type(name, obj, platform=_platform(platform))


def pycapsule(funcptr: Any) -> Any:
    """A capsule (``PyCapsule``) with the address of a function.

    Args:
      funcptr: a function of a ``ctypes`` library, or its address.

    Raises:
      TypeError, ValueError: for anything else, and for the address 0.
    """
    function: Any = ctypes._CFuncPtr  # type: ignore[attr-defined]
    if not isinstance(funcptr, (function, ctypes.c_void_p, int)):
        raise TypeError(
            f"pycapsule takes a function of a ctypes library or an address, not {funcptr!r}"
        )
    address = ctypes.cast(funcptr, ctypes.c_void_p).value
    if not address:
        raise ValueError("pycapsule: the address of the function is 0")
    new = ctypes.pythonapi.PyCapsule_New
    new.restype = ctypes.py_object
    new.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    return new(address, None, None)


def load_library(
    path: str | os.PathLike[str],
    symbols: Iterable[str] | Mapping[str, str | Mapping[str, str]] | None = None,
    *,
    platform: str = "cpu",
    api_version: int = 1,
    signatures: str | os.PathLike[str] | Mapping[str, Signature | str] | None = None,
) -> ctypes.CDLL:
    """Load a shared library, and register functions of it.

    Args:
      path: the file.
      symbols: the names of functions, which are the names of the targets, too; or a dictionary
        from targets to functions, or to dictionaries of functions by stage. By default the
        functions whose signatures ``signatures`` declares.
      platform, api_version: as for :func:`register_ffi_target`.
      signatures: the signatures of targets by name; or a C or C++ header or source, a file (also
        one next to the library) or its text. It declares each target in a comment that begins with
        ``primax:``, such as ``// primax: acme_norm(f32[b n], f32[n]; eps: f32) -> f32[b n]``. A
        declaration goes on in the next lines of comment where it cannot end.

    Returns:
      The library, which stays loaded.

    Raises:
      ValueError: if a declaration is not valid, with its file and line; if there is a signature
        without a function, or a file does not declare a function of ``symbols``.
      OSError: if a file cannot be read, or the library not be loaded.
      AttributeError: if it has no function of a name.
    """
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(f"load_library takes the path of a shared library, not {path!r}")
    file = os.fspath(path)
    if not os.path.isfile(file):
        raise FileNotFoundError(f"there is no shared library {file!r}")
    symbols = _checked_symbols(file, symbols)
    known = _known_signatures(file, symbols, signatures)
    if not isinstance(symbols, Mapping):
        symbols = {name: name for name in (known if symbols is None else symbols)}
    if unknown := {*known} - {*symbols}:
        raise ValueError(
            f"there are signatures of {sorted(unknown)}, which are not among the targets "
            f"{sorted(symbols)}"
        )
    library = ctypes.CDLL(file)
    handlers = {
        target: {stage: _symbol(library, file, s) for stage, s in symbol.items()}
        if isinstance(symbol, Mapping)
        else _symbol(library, file, symbol)
        for target, symbol in symbols.items()
    }
    _libraries.append(library)
    for target, handler in handlers.items():
        signature = known.get(target)
        register_ffi_target(target, handler, platform, api_version, signature=signature)
    return library


def _checked_symbols(file: str, symbols: Any) -> Any:
    """The names of functions, or a dictionary from targets to them."""
    if symbols is None:
        return None
    if isinstance(symbols, str):
        return [symbols]
    if isinstance(symbols, Mapping):
        values = [
            s for v in symbols.values() for s in (v.values() if isinstance(v, Mapping) else [v])
        ]
        names: list[Any] = [*symbols, *values]
    else:
        names = symbols = list(symbols) if isinstance(symbols, Iterable) else [symbols]
    for name in names:
        if not isinstance(name, str):
            raise TypeError(
                f"the symbols of load_library({file!r}) contain {name!r}, but they are names of "
                "functions: ['acme_norm'], or {'target': 'function'}"
            )
    return symbols


def _known_signatures(library: str, symbols: Any, signatures: Any) -> Mapping[str, Signature | str]:
    """The signatures of the targets of a library."""
    if signatures is None or isinstance(signatures, Mapping):
        if symbols is None:
            raise TypeError(
                f"load_library({library!r}) lacks the names of functions: pass "
                "symbols=['acme_norm'], or signatures='kernels.h', a header that declares them"
            )
        return dict(signatures or {})
    if not isinstance(signatures, (str, os.PathLike)):
        raise TypeError(
            f"signatures is {signatures!r}: it is a header with comments 'primax: ...', or a "
            "dictionary of the signatures of targets"
        )
    source = os.fspath(signatures)
    if "primax:" not in source and not os.path.exists(source):
        beside = os.path.join(os.path.dirname(os.path.abspath(library)), source)
        if not os.path.exists(beside):
            raise FileNotFoundError(
                f"signatures is {source!r}, but there is no such file, and no {beside!r} next to "
                "the library (a text of signatures contains 'primax:')"
            )
        source = beside
    declared = declared_signatures(source)
    if symbols is None:
        return declared
    if missing := [name for name in symbols if name not in declared]:
        similar = difflib.get_close_matches(missing[0], declared, 1)
        hint = f"; did you mean {similar[0]!r}?" if similar else ""
        raise ValueError(
            f"the signatures of {missing} are not declared in {_shortened(source)}, which declares "
            f"{sorted(declared)}{hint}"
        )
    return {name: declared[name] for name in symbols}


def _shortened(source: str) -> str:
    return "the text of signatures" if "primax:" in source else source


def _check_signature(name: str, signature: Signature, api_version: int) -> None:
    if api_version != 1 and signature.has_attributes:
        raise ValueError(
            f"the signature of {name!r} has attributes, which functions of the earlier interfaces "
            "(api_version=0) do not receive"
        )
    present = _signatures.get(name)
    if present is not None and present != signature:
        raise ValueError(
            f"the native function {name!r} is registered with another signature, {present!r}"
        )


def _symbol(library: ctypes.CDLL, file: str, symbol: str) -> Any:
    try:
        return getattr(library, symbol)
    except AttributeError:
        raise AttributeError(
            f"the library {file!r} has no function {symbol!r}: define the handler with "
            'XLA_FFI_DEFINE_HANDLER_SYMBOL, or declare the function extern "C"'
        ) from None


def check_known(target: str, platform: str, source: Any) -> None:
    """Raise an error for a native function that no package has registered.

    Args:
      source: the location of the call.

    Raises:
      LookupError: in this case, on a CPU; other platforms may have functions of their own.
    """
    if platform != "cpu" or native.is_registered(target):
        return
    hints = [f"register it before: register_ffi_target({target!r}, handler)"]
    if similar := difflib.get_close_matches(target, _names, 1):
        hints.insert(0, f"did you mean {similar[0]!r}?")
    if package := _package_of(target):
        hints.insert(0, f"the package {package!r} is installed, but not imported: import {package}")
    raise LookupError(
        f"the native function {target!r}, called at {summarize(source)}, is not registered: "
        + "; or ".join(hints)
    )


def _package_of(target: str) -> str | None:
    """The installed package that is not imported yet and that the target's name begins with."""
    words = target.replace(".", "_").split("_")
    for n in range(len(words), 0, -1):
        package = "_".join(words[:n])
        if package.isidentifier() and package not in sys.modules:
            try:
                if importlib.util.find_spec(package) is not None:
                    return package
            except (ImportError, ValueError):
                continue
    return None


def _platform(platform: Any) -> str:
    """The name of a platform; XLA's own names (``Host``, ``CUDA``, ``ROCM``) are accepted."""
    if not isinstance(platform, str):
        raise TypeError(f"the platform of a native function is a text, not {platform!r}")
    lowered = platform.lower()
    return "cpu" if lowered == "host" else lowered


def _check_handlers(name: Any, fn: Any, api_version: int) -> None:
    for handler in fn.values() if isinstance(fn, Mapping) else [fn]:
        if isinstance(handler, (int, ctypes.c_void_p)):
            raise TypeError(
                f"the handler of {name!r} is the address of a function: wrap it in a capsule with "
                "pycapsule(address)"
            )
    if api_version == 1:
        check_version(name, fn)
