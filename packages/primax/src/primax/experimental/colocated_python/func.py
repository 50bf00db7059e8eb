"""Functions that run on the hosts of their arguments' devices."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from primax_core import Array, ShapeDtypeStruct, device_put, tree, tree_util
from primax_core.extend.traces import Tracer

from .serialization import copy_of


@dataclass(frozen=True)
class Specialization:
    """Declared types and devices of a function.

    ``in_specs`` is a pytree ``(args, kwargs)`` of ``ShapeDtypeStruct``; ``out_specs_fn`` computes
    the types of results from types of arguments; ``devices`` are those on which it runs.
    """

    in_specs: Any = None
    out_specs_fn: Callable[..., Any] | None = None
    devices: Sequence[Any] | None = None

    def update(self, **values: Any) -> Specialization:
        """Return a specialization with further values.

        Raises:
          ValueError: for a value that is known already.
        """
        changes = {name: value for name, value in values.items() if value is not None}
        for name in changes:
            if getattr(self, name) is not None:
                raise ValueError(f"specialize: {name} was declared before and cannot change")
        return replace(self, **changes)


@dataclass
class Runner:
    """The copy of a function, made by its first call."""

    fun: Callable[..., Any]
    _copy: Callable[..., Any] | None = None
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        with self._lock:
            if self._copy is None:
                self._copy = copy_of(self.fun)
        return self._copy(*args, **kwargs)


def make_callable(fun: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function as :func:`..api.colocated_python` does."""
    name = getattr(fun, "__name__", "unnamed function")
    return specialized(fun, name, functools.partial(Runner, fun), Specialization())


def specialized(
    fun: Callable[..., Any],
    name: str,
    new_runner: Callable[[], Callable[..., Any]],
    specialization: Specialization,
) -> Callable[..., Any]:
    """Return a function with the method ``specialize`` that checks types and calls a runner."""
    runner = new_runner()

    def call(*args: Any, **kwargs: Any) -> Any:
        _check_arguments(name, args, kwargs, specialization)
        result = runner(*args, **kwargs)
        return _checked_result(name, result, args, kwargs, specialization)

    def specialize(
        in_specs: Any = None,
        out_specs_fn: Callable[..., Any] | None = None,
        devices: Sequence[Any] | None = None,
    ) -> Callable[..., Any]:
        """Return the function with declared types, or with its devices.

        Args:
          in_specs: pytree ``(args, kwargs)`` of ``ShapeDtypeStruct`` with shardings.
          out_specs_fn: function from types of arguments to the pytree of types of results.
          devices: devices of this process; needed by functions without arrays as arguments.

        Raises:
          ValueError: if one of them was declared before.
          TypeError: if `out_specs_fn` is not callable.
        """
        if out_specs_fn is not None and not callable(out_specs_fn):
            raise TypeError(f"specialize takes a function as out_specs_fn, got {out_specs_fn!r}")
        more = specialization.update(in_specs=in_specs, out_specs_fn=out_specs_fn, devices=devices)
        return specialized(fun, name, new_runner, more)

    wrapped: Any = functools.wraps(fun)(call) if hasattr(fun, "__name__") else call
    wrapped.specialize = specialize
    return wrapped  # type: ignore[no-any-return]


def _check_arguments(
    name: str, args: tuple[Any, ...], kwargs: dict[str, Any], spec: Specialization
) -> None:
    leaves = tree_util.tree_leaves_with_path((args, kwargs))
    for path, x in leaves:
        where = _named("argument", path)
        if isinstance(x, Tracer):
            raise TypeError(
                f"{name}: {where} is traced ({x.aval}); colocated Python functions "
                "are called outside of jit, grad and vmap. Inside, use io_callback"
            )
        if not isinstance(x, Array):
            raise TypeError(
                f"{name}: arguments of colocated Python functions must be arrays, but "
                f"{where} is of type {type(x).__name__}: make it an array with device_put"
            )
    devices = spec.devices
    if devices is None:
        devices = _common_devices(name, leaves)
    _check_devices(name, devices)
    if spec.in_specs is not None:
        _check_types(name, "argument", (args, kwargs), spec.in_specs)


def _common_devices(name: str, leaves: Sequence[tuple[Any, Any]]) -> Sequence[Any]:
    if not leaves:
        raise ValueError(
            f"{name} has no arguments whose devices say where it runs: name them with "
            f"{name}.specialize(devices=...)"
        )
    (path, first), *others = leaves
    devices: Sequence[Any] = first.sharding._devices
    for other_path, x in others:
        if x.sharding._devices != devices:
            raise ValueError(
                f"{name}: arguments must be on the same devices in the same order, but "
                f"{_named('argument', path)} is on {list(devices)} and "
                f"{_named('argument', other_path)} on {list(x.sharding._devices)}: "
                "move one with device_put"
            )
    return devices


def _check_devices(name: str, devices: Sequence[Any]) -> None:
    if not len(devices):
        raise ValueError(f"{name}: devices is empty: pass at least one CPU device")
    for device in devices:
        if device.platform != "cpu":
            raise ValueError(
                f"{name}: colocated Python runs on CPU devices, but {device} is a "
                f"{device.platform} device: move the arguments to colocated_cpu_devices(...)"
            )
    index = devices[0].client.process_index()
    if all(device.process_index != index for device in devices):
        raise ValueError(f"{name}: no device of {list(devices)} is in this process ({index})")


def _checked_result(
    name: str, result: Any, args: tuple[Any, ...], kwargs: dict[str, Any], spec: Specialization
) -> Any:
    for path, x in tree_util.tree_leaves_with_path(result):
        if not isinstance(x, Array):
            raise ValueError(
                f"{name}: results of colocated Python functions must be arrays, but "
                f"{_named('result', path)} is of type {type(x).__name__}"
            )
    if spec.out_specs_fn is None:
        return result
    in_args, in_kwargs = spec.in_specs or tree.map(_type_of, (args, kwargs))
    out_specs = spec.out_specs_fn(*in_args, **in_kwargs)
    _check_types(name, "result", result, out_specs)
    return tree.map(lambda x, s: device_put(x, s.sharding) if s.sharding else x, result, out_specs)


def _type_of(x: Array) -> ShapeDtypeStruct:
    return ShapeDtypeStruct(x.shape, x.dtype, sharding=x.sharding, weak_type=x.weak_type)


def _check_types(name: str, what: str, values: Any, specs: Any) -> None:
    structure, declared = tree.structure(values), tree.structure(specs)
    if structure != declared:
        raise ValueError(
            f"{name}: {what}s have the structure {structure}, but {declared} is declared"
        )
    for (path, x), spec in zip(
        tree_util.tree_leaves_with_path(values), tree.leaves(specs), strict=True
    ):
        if x.shape != spec.shape or x.dtype != spec.dtype:
            raise ValueError(
                f"{name}: {_named(what, path)} is {x.dtype}{list(x.shape)}, but "
                f"{spec.dtype}{list(spec.shape)} is declared"
            )


def _named(what: str, path: Any) -> str:
    """An argument or a result, or a leaf of it."""
    return f"{what} {tree_util.keystr(path)}" if path else f"the {what}"
