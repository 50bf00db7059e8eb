"""Differences between jaxlib versions; no other module depends on the version."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache
from typing import Any, Final

import numpy as np

from .._ir import dtypes

# Level of XLA's log messages; read when jaxlib is first imported.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")

from jaxlib import _hlo, _jax, version as _version

from .capsules import host_view
from .packed import read_packed

JAXLIB_VERSION: Final[tuple[int, ...]] = tuple(
    int(p) for p in _version.__version__.split(".")[:3] if p.isdigit()
)
OLDEST, TOO_NEW = (0, 10, 2), (0, 13)


def check_version(installed: tuple[int, ...]) -> None:
    """Raise ``ImportError`` if the core does not support a jaxlib version."""
    if not OLDEST <= installed < TOO_NEW:
        raise ImportError(
            f"primax-core works with jaxlib >= 0.10.2 and < 0.13, but jaxlib "
            f"{'.'.join(map(str, installed))} is installed: pip install 'jaxlib>=0.10.2,<0.13'"
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

# jaxlib 0.10 copies arrays with other layouts row-major, but reports the original layout.
COPIES_KEEP_LAYOUTS: Final = not _FIRST

# jaxlib 0.10 imports jax to read an array on several devices.
READS_SEVERAL_DEVICES: Final = not _FIRST

# On several devices a deleted argument of an executable ends the process.
ABORTS_ON_DELETED_ARGUMENTS: Final = _FIRST
# Executables in flight whose collectives wait for each other abort the process.
COLLECTIVES_MAY_DEADLOCK: Final = JAXLIB_VERSION < (0, 12)

# A loop of the CPU over more elements, which XLA divides among threads, ends the process.
MOST_ELEMENTS: Final = 2**63 if _FIRST else 2**35

# Element types that the installed jaxlib does not support.
UNKNOWN_DTYPES: Final[frozenset] = frozenset(
    d for d in dtypes.narrow_floats if _FIRST and d.name.startswith("float6")
)


def approximate_top_k_size(size: int, rank: int, k: int, recall: float, override: int) -> int:
    """Number of elements that a TPU keeps of an axis for an approximate selection of ``k``."""
    return _jax.approx_top_k_reduction_output_size(size, rank, k, recall, False, override)[0]


@cache
def build() -> tuple:
    """The version of jaxlib and the sizes of its libraries, which distinguish its builds."""
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
    """Shapes and dtypes of the arguments and results of an executable.

    A dtype is ``None`` if jaxlib has no NumPy dtype for it.
    """
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
    """Fingerprint of the devices and their connections."""
    return _jax.get_topology_for_devices(list(devs)).fingerprint()


def result_handler(aval, sharding) -> Any:
    """jaxlib's handler that creates one raw array from an output of an executable."""
    if _FIRST:
        return _jax.array_result_handler(aval, sharding, True, True)
    return _jax.array_result_handler(aval, sharding, True)


def refine_shapes(module: bytes) -> bytes:
    """Specialize a module (in bytecode) whose ``main`` has static shapes: all shapes become static.

    Its shape assertions are checked.

    Raises:
      ValueError: if a shape remains dynamic, or an assertion fails.
    """
    return _jax.mlir.refine_polymorphic_shapes(
        module, enable_shape_assertions=True, validate_static_shapes=True
    )


# Dtypes that NumPy reads through the buffer protocol of a raw array on a CPU.
_NATIVE: Final[frozenset] = frozenset(map(np.dtype, "?bhilqBHILQefdFD"))
_PACKED: Final[frozenset] = frozenset(
    d for d in dtypes.all_dtypes if d not in _NATIVE and dtypes.itemsize_bits(d) < 8
)


def to_host(buf) -> np.ndarray:
    """The values of a raw array, as a read-only NumPy array that may share its memory.

    The array must not be deleted. The result stays valid after the raw array is deleted.
    """
    buf.block_until_ready()  # reading an unallocated buffer aborts
    dtype = buf.aval.dtype
    if dtype in _NATIVE:
        try:
            return np.asarray(memoryview(buf))
        except BufferError:  # on an accelerator, or on several devices
            pass
    value = _to_host_first(buf, dtype) if _FIRST else buf._to_np_array_did_copy()[0]
    value.setflags(write=False)
    return value


def parts_to_host(buf, keep: bool) -> np.ndarray:
    """The values of a computed raw array on several devices, read-only.

    Args:
      keep: jaxlib may keep them with the raw array, for a later read.
    """
    if _FIRST:
        return to_host(buf)
    value = (buf if keep else buf.clone())._to_np_array_did_copy()[0]
    value.setflags(write=False)
    return value


def _to_host_first(buf, dtype) -> np.ndarray:
    """``to_host`` on jaxlib 0.10, whose own conversion to NumPy imports jax."""
    if buf.platform() != "cpu":
        return buf._single_device_array_to_np_array_did_copy()[0]
    if dtype in _PACKED:
        return read_packed(buf, result_handler)
    return host_view(_jax.buffer_to_dlpack_managed_tensor(buf.clone()), buf.aval.shape, dtype)


def start_copies_to_host(bufs: Sequence) -> None:
    """Start the transfers of raw arrays to the host, if jaxlib supports it."""
    if not _FIRST:
        _jax.batched_copy_to_host_async(list(bufs))


def export_capsule(buf, stream: int | None, max_version: tuple[int, int] | None, copied: bool):
    """A DLPack capsule that shares the memory of a raw array.

    It is created from a clone: deleting an array with a live capsule ends the process.
    """
    if _FIRST or JAXLIB_VERSION < (0, 12):
        return _jax.buffer_to_dlpack_managed_tensor(buf.clone(), stream)
    return _jax.buffer_to_dlpack_managed_tensor(
        buf.clone(), stream, max_version=max_version, copied=copied
    )


def distributed_service(address: str, num_nodes: int, **options: Any) -> Any:
    """jaxlib's coordination service, which members may leave and join one by one."""
    return _jax.get_distributed_runtime_service(
        address, num_nodes, recoverable=True, **_known(options)
    )


def distributed_client(address: str, node_id: int, **options: Any) -> Any:
    """jaxlib's client of a coordination service; it is not connected yet."""
    return _jax.get_distributed_runtime_client(
        address, node_id, use_compression=True, **_known(options)
    )


def _known(options: dict[str, Any]) -> dict[str, Any]:
    """The options that are given; jaxlib 0.10 has no certificates (mTLS)."""
    present = {k: v for k, v in options.items() if v is not None}
    if _FIRST and (unknown := [k for k in present if k.startswith(("mtls_", "verify_"))]):
        raise ValueError(
            f"{', '.join(unknown)}: certificates between processes need jaxlib 0.11 or newer, but "
            f"jaxlib {_version.__version__} is installed"
        )
    return present


def gloo_collectives(client: Any, host: str | None) -> Any:
    """Collectives between the CPU devices of several processes."""
    return _jax.make_gloo_tcp_collectives(distributed_client=client, hostname=host)


def preemption_manager(client: Any) -> Any:
    """jaxlib's agreement of processes on the step to stop at after a notice of preemption."""
    manager = _jax.create_preemption_sync_manager()
    manager.initialize(client)
    return manager
