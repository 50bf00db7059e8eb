"""Exchange of arrays with other libraries."""

import ml_dtypes
import numpy as np
import pytest
from processes import run

from primax_core._api.transfer import device_put
from primax_core._base.config import enable_x64
from primax_core._runtime.array import put
from primax_core._runtime.capsules import exportable_dtypes, host_view
from primax_core._runtime.devices import devices
from primax_core._runtime.dlpack import from_dlpack, is_supported_dtype


class Foreign:
    """An array of another library: only the methods of DLPack."""

    def __init__(self, array, versions=True):
        self.array, self.versions = array, versions

    def __dlpack__(self, **options):
        if not self.versions and "max_version" in options:
            raise TypeError("unexpected keyword argument 'max_version'")
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def aligned(values):
    """A NumPy array whose memory XLA can compute on."""
    values = np.asarray(values)
    raw = np.zeros(values.nbytes + 64, np.uint8)
    view = raw[-raw.ctypes.data % 64 :][: values.nbytes].view(values.dtype).reshape(values.shape)
    view[...] = values
    return view


# Export


@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.uint32, np.float16, np.complex64])
@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (0, 2)], ids=str)
def test_numpy_imports_ours(dtype, shape):
    x = put(np.ones(shape, dtype))
    y = np.from_dlpack(x)
    assert y.dtype == dtype and np.array_equal(y, x)
    if x.size:
        assert y.ctypes.data == x.unsafe_buffer_pointer()


def test_device():
    kind, number = put(np.ones(2)).__dlpack_device__()
    assert (kind, number, kind.name) == (1, 0, "kDLCPU")


@pytest.mark.parametrize("dtype", sorted(exportable_dtypes, key=str), ids=lambda d: d.name)
def test_every_exportable_dtype_round_trips(dtype):
    with enable_x64(True):
        values = np.arange(6).reshape(2, 3).astype(dtype)
        x = put(values)
        for versions in (True, False):
            y = from_dlpack(Foreign(x, versions))
            assert y.dtype == dtype and np.asarray(y).tobytes() == values.tobytes()
            assert y.unsafe_buffer_pointer() == x.unsafe_buffer_pointer()


def test_export_options():
    x = put(np.arange(3, dtype=np.float32))
    copied = host_view(x.__dlpack__(copy=True))
    shared = host_view(x.__dlpack__(max_version=(1, 0), dl_device=(1, 0)))
    assert np.array_equal(copied, shared)
    assert shared.ctypes.data == x.unsafe_buffer_pointer() != copied.ctypes.data
    with pytest.raises(BufferError, match=r"device \(1, 0\) and cannot be exported to \(2, 0\)"):
        x.__dlpack__(dl_device=(2, 0))
    with pytest.raises(BufferError, match=r"^dtype int4 has no DLPack equivalent$"):
        put(np.ones(2, ml_dtypes.int4)).__dlpack__()


def test_deleting_an_exported_array():
    text = run("""
        import numpy as np
        from primax_core._runtime.array import put
        from primax_core import jit
        x = put(np.arange(1000, dtype=np.float32))
        y = np.from_dlpack(x)
        capsule = x.__dlpack__()
        x.delete()
        fresh = [put(np.full(1000, 7, np.float32)) for _ in range(50)]
        assert (y == np.arange(1000)).all()
        x = put(np.arange(1000, dtype=np.float32))
        y = np.from_dlpack(x)
        z = jit(lambda x: x + 1, donate_argnums=0)(x)
        assert (y == np.arange(1000)).all() and (np.asarray(z) == np.arange(1000) + 1).all()
        print("alive")
    """)
    assert text == "alive"


# Import


def test_shares_aligned_memory():
    source = aligned(np.arange(100, dtype=np.float32))
    x = from_dlpack(source)
    assert x.committed and not x.weak_type
    assert x.unsafe_buffer_pointer() == source.ctypes.data
    assert from_dlpack(source, copy=False).unsafe_buffer_pointer() == source.ctypes.data
    copied = from_dlpack(source, copy=True)
    assert copied.unsafe_buffer_pointer() != source.ctypes.data
    assert np.array_equal(copied, source)


def test_shared_memory_lives_as_long_as_the_array():
    x = from_dlpack(aligned(np.arange(1000, dtype=np.float32)))
    fresh = [aligned(np.full(1000, 7, np.float32)) for _ in range(50)]
    assert np.array_equal(x, np.arange(1000)) and fresh


def test_shared_memory_is_never_donated():
    from primax_core import jit

    source = aligned(np.arange(100, dtype=np.float32))
    y = jit(lambda x: x + 1, donate_argnums=0)(from_dlpack(source))
    assert np.array_equal(source, np.arange(100)) and np.array_equal(y, source + 1)


@pytest.mark.parametrize(
    "view",
    [lambda a: a[::2], lambda a: a.T, lambda a: a[::-1], lambda a: a[1:], lambda a: a[:, 1]],
    ids=["strided", "transposed", "reversed", "shifted", "column"],
)
def test_copies_other_memory(view):
    source = view(aligned(np.arange(12, dtype=np.int32).reshape(4, 3)))
    assert np.array_equal(from_dlpack(source), source)
    with pytest.raises(ValueError, match="however copy=False"):
        from_dlpack(source, copy=False)


def test_narrows_64_bit_types():
    source = aligned(np.arange(8))
    assert from_dlpack(source).dtype == np.int32
    with pytest.raises(ValueError, match="dtype int64 which becomes int32"):
        from_dlpack(source, copy=False)
    with enable_x64(True):
        assert from_dlpack(source, copy=False).dtype == np.int64


def test_devices():
    one = devices()[1]
    source = aligned(np.arange(3, dtype=np.float32))
    assert from_dlpack(source, device=one).device == one
    x = device_put(1.0)
    assert from_dlpack(x).committed and not from_dlpack(x).weak_type
    assert from_dlpack(x).unsafe_buffer_pointer() == x.unsafe_buffer_pointer()
    assert from_dlpack(x, copy=True).unsafe_buffer_pointer() != x.unsafe_buffer_pointer()
    assert from_dlpack(x, one).device == one
    with pytest.raises(ValueError, match="requires a copy since the source device is"):
        from_dlpack(x, one, copy=False)


def test_unsupported_imports():
    with pytest.raises(TypeError, match="must have __dlpack__ and __dlpack_device__ methods"):
        from_dlpack(put(np.ones(2)).__dlpack__())
    with pytest.raises(BufferError):
        from_dlpack(np.ones(2, ">f4"))
    with pytest.raises(TypeError, match="expected an unused DLPack capsule"):
        host_view(object())


def test_supported_dtypes():
    assert all(map(is_supported_dtype, ["bool", "int8", "bfloat16", "float32", "complex64", "u8"]))
    assert not any(map(is_supported_dtype, ["int4", "float4_e2m1fn"]))
