"""The one file that tells jaxlib's versions apart."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache
from typing import Any, Final

import numpy as np

from .._ir import dtypes

# XLA's information messages at the start of a client; read when jaxlib is first imported.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")

from jaxlib import _hlo, _jax, version as _version

from .capsules import host_view
from .packed import read_packed

JAXLIB_VERSION: Final[tuple[int, ...]] = tuple(
    int(p) for p in _version.__version__.split(".")[:3] if p.isdigit()
)
OLDEST, TOO_NEW = (0, 10, 2), (0, 13)


def check_version(found: tuple[int, ...]) -> None:
    """Raise ``ImportError`` for a jaxlib that the core does not work with."""
    if not OLDEST <= found < TOO_NEW:
        raise ImportError(
            f"primax-core works with jaxlib >= 0.10.2 and < 0.13, but jaxlib "
            f"{'.'.join(map(str, found))} is installed: pip install 'jaxlib>=0.10.2,<0.13'"
        )


check_version(JAXLIB_VERSION)

_FIRST: Final = JAXLIB_VERSION < (0, 11)

HloSharding = _hlo.HloSharding
collect_garbage = _jax.collect_garbage
GSPMDSharding = _jax.GSPMDSharding
JaxRuntimeError = _jax.JaxRuntimeError
serialize_portable_artifact = _jax.mlir.serialize_portable_artifact
deserialize_portable_artifact = _jax.mlir.deserialize_portable_artifact
hlo_to_stablehlo = _jax.mlir.hlo_to_stablehlo
refine_polymorphic_shapes = _jax.mlir.refine_polymorphic_shapes

# Copies of arrays in other layouts than row-major: jaxlib 0.10 writes them row-major and calls them
# otherwise.
COPIES_KEEP_LAYOUTS: Final = not _FIRST

# Element types that the installed jaxlib cannot hold.
UNKNOWN_DTYPES: Final[frozenset] = frozenset(
    d for d in dtypes.narrow_floats if _FIRST and d.name.startswith("float6")
)


def approximate_top_k_size(size: int, rank: int, k: int, recall: float, override: int) -> int:
    """How many elements a TPU leaves of an axis, of which ``k`` are to be chosen."""
    return _jax.approx_top_k_reduction_output_size(size, rank, k, recall, False, override)[0]


@cache
def build() -> tuple:
    """The version of jaxlib and the sizes of its libraries, which tell builds of it apart."""
    folder = os.path.dirname(os.path.abspath(_jax.__file__))
    names = [os.path.basename(_jax.__file__)]
    names += (f"libjax_common{end}" for end in (".so", ".dylib", ".dll", ".pyd"))
    sizes = []
    for name in names:
        try:
            sizes.append((name, os.stat(os.path.join(folder, name)).st_size))
        except OSError:
            pass
    return (_version.__version__, *sizes)


def program_shape(raw: Any) -> tuple[list[tuple], list[tuple]]:
    """Shapes and dtypes of the buffers that an executable takes and gives; a dtype is ``None``
    where jaxlib knows none of NumPy's."""
    module = raw.hlo_modules()[0]
    shape = _hlo.XlaComputation(module.as_serialized_hlo_module_proto()).program_shape()
    result = shape.result_shape()
    results = result.tuple_shapes() if result.is_tuple() else [result]
    return [*map(_described, shape.parameter_shapes())], [*map(_described, results)]


def _described(shape: Any) -> tuple:
    try:
        return shape.dimensions(), shape.numpy_dtype()
    except Exception:
        return shape.dimensions(), None


def topology_fingerprint(devs: Sequence) -> int:
    """What jaxlib knows of the devices and how they are connected, as a number."""
    return _jax.get_topology_for_devices(list(devs)).fingerprint()


def result_handler(aval, sharding) -> Any:
    """jaxlib's handler that makes one raw array of an executable's output."""
    if _FIRST:
        return _jax.array_result_handler(aval, sharding, True, True)
    return _jax.array_result_handler(aval, sharding, True)


def refine_shapes(module: bytes) -> bytes:
    """A module (in bytecode) whose ``main`` takes static shapes, with all shapes static.

    Its shape assertions are checked.

    Raises:
      ValueError: if some shapes stay dynamic, or an assertion does not hold.
    """
    return _jax.mlir.refine_polymorphic_shapes(
        module, enable_shape_assertions=True, validate_static_shapes=True
    )


# What NumPy reads through the buffer protocol of a raw array on a CPU.
_NATIVE: Final[frozenset] = frozenset(map(np.dtype, "?bhilqBHILQefdFD"))
_PACKED: Final[frozenset] = frozenset(
    d for d in dtypes.all_dtypes if d not in _NATIVE and dtypes.itemsize_bits(d) < 8
)


def to_host(buf) -> np.ndarray:
    """The values of a raw array of any dtype, as a NumPy array that may share its memory.

    The array must be alive. What is returned stays valid when the raw array is deleted.
    """
    dtype = buf.aval.dtype
    if dtype in _NATIVE:
        try:
            return np.asarray(memoryview(buf))
        except BufferError:  # on an accelerator, or on several devices
            pass
    if not _FIRST:
        return buf._to_np_array_did_copy()[0]
    return _to_host_first(buf, dtype)


def _to_host_first(buf, dtype) -> np.ndarray:
    """``to_host`` on jaxlib 0.10, whose own way to NumPy imports jax."""
    if buf.platform() != "cpu":
        return buf._single_device_array_to_np_array_did_copy()[0]
    if dtype in _PACKED:
        return read_packed(buf, result_handler)
    return host_view(_jax.buffer_to_dlpack_managed_tensor(buf.clone()), buf.aval.shape, dtype)


def start_copies_to_host(bufs: Sequence) -> None:
    """Start the transfers of raw arrays to the host, where jaxlib can do so."""
    if not _FIRST:
        _jax.batched_copy_to_host_async(list(bufs))


def export_capsule(buf, stream: int | None, max_version: tuple[int, int] | None, copied: bool):
    """A DLPack capsule that shares the memory of a raw array.

    It is made of a clone: deleting an array of which a capsule lives ends the process.
    """
    if _FIRST or JAXLIB_VERSION < (0, 12):
        return _jax.buffer_to_dlpack_managed_tensor(buf.clone(), stream)
    return _jax.buffer_to_dlpack_managed_tensor(
        buf.clone(), stream, max_version=max_version, copied=copied
    )
