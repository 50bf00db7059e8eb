"""Monitor of jaxlib's process-wide state: its classes and global variables.

Call ``watch()`` before any use of jaxlib. Inside ``untouched()``, the code must not call a setter
of jaxlib's globals, change an attribute of a jaxlib class, or import jax.
"""

from __future__ import annotations

import contextlib
import copyreg
import functools
import importlib
import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import jaxlib._jax as _jax
import numpy as np
from jaxlib import _profiler, xla_client
from jaxlib.mlir import ir

# Functions of these modules with such a prefix write or return global state.
SETTERS = (
    (_jax.jax_jit, ("set_",)),
    (_jax.pytree, ("default_registry",)),
    (_jax.guard_lib, ("",)),
    (
        _jax,
        (
            "set_tracer_class",
            "set_typed_",
            "set_valid_dtypes",
            "set_pspec_unconstrained",
            "set_invalid_input_exception",
            "set_tracebacks_enabled",
            "set_send_traceback_",
            "add_exclude_path",
            "register_canonicalize_value_handler",
            "register_custom_call_partitioner",
            "register_custom_call_as_batch_partitionable",
            "register_xla_transform",
        ),
    ),
    (xla_client, ("register_custom_call_handler", "register_custom_type_handler")),
    (_profiler, ("set_metadata", "start_server")),
    (ir, ("register_attribute_builder",)),
)

_default_registry = _jax.pytree.default_registry()
_armed = False
_calls: list[str] = []


def _tripwire(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wired(*args: Any, **kwargs: Any) -> Any:
        caller = sys._getframe(1).f_globals.get("__name__", "")
        if _armed and caller.partition(".")[0] != "jaxlib":
            _calls.append(f"{name} called by {caller}")
        return function(*args, **kwargs)

    return wired


def watch() -> list[str]:
    """Wrap every setter with a tripwire and return the names of the wrapped setters."""
    wired = []
    for module, prefixes in SETTERS:
        for name in dir(module):
            function = getattr(module, name)
            if name.startswith("_") or isinstance(function, type) or not callable(function):
                continue
            if name.startswith(prefixes):
                full = f"{module.__name__}.{name}"
                setattr(module, name, _tripwire(full, function))
                wired.append(full)
    return wired


def _jaxlib_modules() -> list[ModuleType]:
    names = ["jaxlib._jax", "jaxlib.xla_client", "jaxlib._profiler"]
    modules = [importlib.import_module(name) for name in names]
    modules += [m for m in vars(_jax).values() if isinstance(m, ModuleType)]
    return modules


def _snapshot() -> dict[str, dict[str, Any]]:
    state: dict[str, dict[str, Any]] = {}
    for module in _jaxlib_modules():
        for name, value in vars(module).items():
            state[f"{module.__name__}.{name} itself"] = {name: value}
            if isinstance(value, type):
                state[f"class {module.__name__}.{name}"] = dict(vars(value))
    # Config objects that are part of jax's cache keys are listed here when they are created.
    state["config options"] = dict.fromkeys(map(str, _jax.config.trace_context_names()), True)
    state["copyreg"] = {str(key): value for key, value in copyreg.dispatch_table.items()}
    state["jax modules"] = {
        name: sys.modules[name] for name in sys.modules if name.partition(".")[0] == "jax"
    }
    return state


def _difference(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    names = before.keys() | after.keys()
    missing = object()
    return sorted(n for n in names if before.get(n, missing) is not after.get(n, missing))


@contextlib.contextmanager
def untouched(who: str) -> Iterator[None]:
    """Context manager that raises AssertionError if the body changes the process-wide state."""
    global _armed
    before = _snapshot()
    _calls.clear()
    _armed = True
    try:
        yield
    finally:
        _armed = False
    after = _snapshot()
    changes = []
    for key in before.keys() | after.keys():
        if names := _difference(before.get(key, {}), after.get(key, {})):
            changes.append(f"{key}: {', '.join(names)}")
    changes += _calls
    if changes:
        raise AssertionError(f"{who} changed the state of jaxlib: {'; '.join(changes)}")


def is_default_leaf(value: object) -> bool:
    """Return True if jax's default registry treats ``value`` as a leaf."""
    leaves, _ = _default_registry.flatten(value)
    return len(leaves) == 1 and leaves[0] is value


def self_test() -> None:
    """Check that a class change, a setter call and an import of jax are each detected."""
    _jaxlib_modules()

    def set_global() -> None:
        _jax.set_tracebacks_enabled(True)

    def change_class() -> None:
        _jax.ArrayImpl.planted = np.pi  # type: ignore[attr-defined]

    for plant in (set_global, change_class):
        try:
            with untouched("self test"):
                plant()
        except AssertionError:
            continue
        raise RuntimeError(f"the watch did not notice {plant.__name__}")
    del _jax.ArrayImpl.planted  # type: ignore[attr-defined]
