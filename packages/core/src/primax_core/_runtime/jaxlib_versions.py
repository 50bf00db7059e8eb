"""The one file that tells jaxlib's versions apart."""

from __future__ import annotations

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")

import numpy as np
from jaxlib import _jax, xla_client
from jaxlib import version as _version

JAXLIB_VERSION: tuple[int, ...] = tuple(
    int(p) for p in _version.__version__.split(".")[:3] if p.isdigit()
)
OLDEST, TOO_NEW = (0, 10, 2), (0, 13)

if not OLDEST <= JAXLIB_VERSION < TOO_NEW:
    raise ImportError(
        f"primax-core works with jaxlib >= 0.10.2 and < 0.13, but jaxlib "
        f"{_version.__version__} is installed: pip install 'jaxlib>=0.10.2,<0.13'"
    )

_HANDLERS_TAKE_CHECKS = JAXLIB_VERSION < (0, 11)
HAS_HOST_COPY = JAXLIB_VERSION >= (0, 11)

HloSharding = xla_client.HloSharding
GSPMDSharding = _jax.GSPMDSharding
XlaRuntimeError = _jax.JaxRuntimeError if hasattr(_jax, "JaxRuntimeError") else RuntimeError


def result_handler(aval, sharding):
    """jaxlib's handler that makes one raw array of an executable's output."""
    if _HANDLERS_TAKE_CHECKS:
        return _jax.array_result_handler(aval, sharding, True, True)
    return _jax.array_result_handler(aval, sharding, True)


def to_host(buf) -> np.ndarray:
    """The values of a raw array of any dtype, as a NumPy array that may share its memory."""
    try:
        return np.asarray(memoryview(buf))
    except (ValueError, TypeError, BufferError, NotImplementedError):
        pass
    if HAS_HOST_COPY:
        return buf._to_np_array_did_copy()[0]
    return _host_through_dlpack(buf)


def _host_through_dlpack(buf) -> np.ndarray:
    from .dlpack import host_view

    return host_view(_jax.buffer_to_dlpack_managed_tensor(buf), buf.shape, buf.dtype)
