"""The identity of a measurement: kernel, call, device and versions."""

from __future__ import annotations

import functools
import hashlib
import inspect
import os
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from primax_core import default_device, devices, tree_util
from primax_core.extend import typeof


@dataclass(frozen=True)
class Identity:
    """Kernel, call, device and versions of a stored result.

    Attributes:
      kernel: name of the function.
      source: digest of its source code.
      key: the call, as text.
      device: kind of device.
      versions: versions of the packages that compile.
    """

    kernel: str
    source: str
    key: str
    device: str
    versions: str


def name_of(fun: Callable[..., Any]) -> str:
    """Module and qualified name of a function."""
    inner = inspect.unwrap(fun)
    name = getattr(inner, "__qualname__", type(inner).__qualname__)
    return f"{getattr(inner, '__module__', None) or 'unknown'}.{name}"


def source_of(fun: Callable[..., Any]) -> str:
    """Digest of a function's source code, or of its bytecode where there is no file."""
    inner = inspect.unwrap(fun)
    try:
        text = inspect.getsource(inner)
    except (OSError, TypeError):
        code = getattr(inner, "__code__", None)
        text = "" if code is None else f"{code.co_code.hex()} {code.co_names} {code.co_varnames}"
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def call_text(args: Sequence[Any], options: Mapping[str, Any]) -> str:
    """Shapes, dtypes, structure and options of a call.

    >>> import numpy as np
    >>> call_text((np.ones((2, 3), np.float32), [np.int32(1)]), {"causal": True})
    'float32[2,3], [int32[]], causal=True'
    """
    texts = tree_util.tree_map(lambda x: _Text(_aval_text(x)), tuple(args))
    parts = [repr(text) for text in texts]
    return ", ".join(parts + [f"{name}={options[name]!r}" for name in sorted(options)])


class _Text(str):
    """A text without quotation marks in its representation."""

    def __repr__(self) -> str:
        return str(self)


def _aval_text(x: Any) -> str:
    aval = x if hasattr(x, "shape") and hasattr(x, "dtype") else typeof(x)
    shape = ",".join(map(str, aval.shape))
    return f"{aval.dtype}[{shape}]"


def key_text(key: Any, fun: Callable[..., Any], args: Sequence[Any], options: Any) -> str:
    """The text that distinguishes calls.

    Args:
      key: ``None`` for all arguments, names of arguments, or a function of the arguments whose
        result has a representation that is the same in each process.

    Raises:
      ValueError: for a name that the call has no argument for.
      TypeError: for a result with an address in its representation.
    """
    if key is None:
        return call_text(args, options)
    if callable(key):
        text = repr(key(*args, **options))
        if " at 0x" in text:
            raise TypeError(f"key returns {text}: return numbers, strings, or tuples of them")
        return text
    bound = {**inspect.signature(fun).bind_partial(*args).arguments, **options}
    texts = []
    for name in key:
        if name not in bound:
            raise ValueError(f"key has {name!r}, the call's arguments are {', '.join(bound)}")
        value = bound[name]
        text = repr(value) if name in options else call_text((value,), {})
        texts.append(f"{name}={text}")
    return ", ".join(texts)


@functools.cache
def cpu_name() -> str:
    """Model and number of cores of this machine's processor."""
    model = platform.processor() or platform.machine()
    try:
        for line in Path("/proc/cpuinfo").read_text("utf-8", "replace").splitlines():
            if line.startswith("model name"):
                model = line.partition(":")[2].strip()
                break
    except OSError:
        pass
    return f"cpu {model}, {os.cpu_count()} cores"


def device_of_calls() -> Any:
    """The default device, which calls are assumed to run on."""
    chosen = default_device.value
    if chosen is None or isinstance(chosen, str):
        return devices(chosen)[0]
    return chosen


def device_name() -> str:
    """The kind of the default device."""
    device = device_of_calls()
    return cpu_name() if device.platform == "cpu" else str(device.device_kind)


@functools.cache
def versions() -> str:
    """Versions of the packages whose compilers and rules a measurement depends on."""
    return ", ".join(
        f"{name} {_version(name)}" for name in ("jaxlib", "primax-core", "primax-kernels")
    )


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "of a source tree"
