"""Portable modules: functions as bytes of StableHLO, for wheels that export functions.

The bytes can be read by other processes, later versions and other platforms. The format of a file
around them, with the structures and types of arguments, belongs to the wheel.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from .._api.stages import Traced
from .._base.errors import InvalidArtifactError
from .._lower import portable_shardings, untrusted
from .._lower.exported import PortableProgram as PortableProgram
from .._lower.lazy import inspection, platforms as _platforms, portable
from .._lower.liveness import devices_of
from .._lower.portable_shardings import PortableSharding as PortableSharding
from .._runtime.dispatch import device_of
from .._runtime.sharding import Sharding
from .._trace.core import Tracer
from ..lax.exported_call import call_exported_p as call_exported_p


class LoweredModule:
    """A function as a module for some platforms, the result of :func:`lower_portable`.

    Attributes:
      name: the function's name.
      kept_args: indices of the arguments of ``main``: those that the function reads.
      everywhere: for several devices, the sharding with the whole array on each; otherwise
        ``None``.
      shardings: for several devices, the shardings of the arguments and those of the results,
        ``None`` where one is not determined.
      in_shardings, out_shardings: the same without devices: for each argument and result a
        :class:`PortableSharding`, or ``None``. A result has one if its memory kind is not the
        default.
    """

    __slots__ = (
        "_lowered", "name", "kept_args", "everywhere", "shardings", "in_shardings", "out_shardings"
    )  # fmt: skip

    def __init__(
        self, lowered: Any, name: str, jaxpr: Any, shardings: Any = None, formats: Any = None
    ):
        self._lowered = lowered
        self.name: str = name
        self.kept_args: tuple[int, ...] = lowered.kept_args
        self.everywhere: Sharding | None = None if shardings is None else shardings.everywhere
        self.shardings: tuple[Sequence[Any], Sequence[Any]] | None = None
        self.in_shardings: tuple[Any, ...] = ()
        self.out_shardings: tuple[Any, ...] = ()
        if shardings is not None:
            self.shardings = tuple(shardings.ins), tuple(shardings.outs)
            describe = portable_shardings.describe
            self.in_shardings = describe(shardings.ins, jaxpr.in_avals)
            self.out_shardings = describe(shardings.outs, jaxpr.out_avals)
        if formats is not None and any(formats.out_kinds):
            self.out_shardings = portable_shardings.with_kinds(
                self.out_shardings or (None,) * len(jaxpr.outvars), formats.out_kinds,
                jaxpr.out_avals, shardings is not None,
            )  # fmt: skip

    @property
    def nr_devices(self) -> int:
        """The number of devices."""
        return 1 if self.everywhere is None else self.everywhere.num_devices

    @property
    def calls_python(self) -> bool:
        """True if it calls Python functions of this process."""
        targets = portable.targets_of(self._lowered.module)
        return bool(self._lowered.callbacks) or any(map(portable.is_callback, targets))

    def refused_calls(self, allowed: Collection[str] = ()) -> dict[str, str]:
        """The native functions that it calls whose meaning may change between versions, each with
        the text of one call, without the allowed ones."""
        return portable.refused_calls(self._lowered.module, allowed)

    def to_bytes(self) -> bytes:
        """The portable bytes, which this process accepts without the checks of unknown bytes."""
        data = portable.to_bytes(self._lowered.module, self.nr_devices > 1)
        untrusted.remember(data)
        untrusted.trust(data)
        return data


def lower_portable(
    traced: Traced,
    platforms: Sequence[str],
    overrides: Mapping[Any, Callable[..., Any]] | None = None,
    everywhere: Sharding | None = None,
) -> LoweredModule:
    """The module of a traced function, the result of ``jit(f).trace(...)``.

    Args:
      traced: the result of ``jit(f).trace(*args)``.
      platforms: ``cpu``, ``cuda``, ``rocm``, ``tpu``. If there are several, ``main`` has the index
        of the platform, an int32, as first argument.
      overrides: lowering rules to use in place of the primitives' own.
      everywhere: a sharding over the devices of the function, if nothing else determines them.

    Returns:
      A :class:`LoweredModule`; ``kept_args`` are the positions of the arguments that ``main``
      takes.

    Raises:
      ValueError: if the function closes over values of an enclosing transformation, or has
        shardings that cannot be written.

    >>> from primax_core import jit, lax
    >>> lower_portable(jit(lambda x, y: lax.sin(y)).trace(1.0, 2.0), ["cpu"]).kept_args
    (1,)
    """
    specs = traced._specs()
    name, donated, keep_unused, _, sharding, requested = traced._options(specs)
    if any(isinstance(c, Tracer) for c in traced._consts):
        raise ValueError(
            f"{name} closes over values of an enclosing transformation, so it cannot be exported: "
            "pass them as arguments"
        )
    shardings = None
    if sharding is None:
        sharding = device_of(specs, devices_of(traced.jaxpr), name)
        if sharding.num_devices == 1:
            sharding = everywhere or devices_of(traced.jaxpr, abstract=True) or sharding
    if sharding.num_devices > 1:
        shardings = traced._executable_shardings(traced.jaxpr, specs, sharding, requested)
    names = (traced.debug_info.arg_names if traced.debug_info else None) or ()
    lowered = _platforms.lower_for(
        traced.jaxpr, name, platforms, donated=donated, keep_unused=keep_unused,
        overrides=overrides, arg_names=names if len(names) == len(traced._avals) else None,
        shardings=shardings,
    )  # fmt: skip
    formats = traced._formats(traced.jaxpr, requested)
    return LoweredModule(lowered, name, traced.jaxpr, shardings, formats)


def check_portable(
    data: bytes,
    in_avals: Sequence[Any],
    out_avals: Sequence[Any],
    *,
    allowed: Collection[str] = (),
    trusted: bool = False,
    nr_devices: int = 1,
) -> None:
    """Raise an error for bytes that are not a module with a ``main`` of these types.

    No input crashes the process: bytes of unknown origin are first read in another process.

    Args:
      data: the bytes of the module.
      in_avals: avals of the arguments of ``main``, of which the index of the platform is one.
      allowed: native functions that it may call, in addition to those with a stable meaning.
      trusted: the source of the bytes is trusted; they are read in this process directly.
      nr_devices: the number of devices. On several, only sharding constraints are accepted from
        unknown sources: not collectives and computations on the parts of one device.
      out_avals: avals of the results of ``main``.

    Returns:
      ``None``.

    Raises:
      InvalidArtifactError: with the reason.

    >>> from primax_core import jit, lax
    >>> from primax_core.extend.portable_modules import lower_portable
    >>> traced = jit(lambda x: lax.sin(x)).trace(1.0)
    >>> data = lower_portable(traced, ["cpu"]).to_bytes()
    >>> avals = traced.jaxpr.in_avals
    >>> check_portable(data, avals, avals, trusted=True)
    """
    if trusted:
        untrusted.trust(data)
    else:
        untrusted.check(data)
    try:
        module = portable.from_bytes(data)
        devices = None if untrusted.is_trusted(data) else nr_devices
        inspection.check_module(module, allowed, devices)
        portable.check_signature(module, in_avals, out_avals)
    except InvalidArtifactError:
        raise
    except Exception as e:  # names that are not valid text, unknown types
        raise InvalidArtifactError(
            f"the artifact is damaged: its module cannot be read: {e}"
        ) from e


def text_of(data: bytes) -> str:
    """The text of a portable module.

    Args:
      data: the bytes of the module.

    Returns:
      A string of MLIR.

    The bytes should be checked first, see :func:`check_portable`.

    >>> from primax_core import jit, lax
    >>> from primax_core.extend.portable_modules import lower_portable
    >>> module = lower_portable(jit(lambda x: lax.sin(x)).trace(1.0), ["cpu"])
    >>> "sine" in text_of(module.to_bytes())
    True
    """
    text: str = portable.as_text(data)
    return text
