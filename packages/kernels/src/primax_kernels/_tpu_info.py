"""Figures of TPUs by generation, from their public descriptions."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any, Final

from primax_core import devices


class ChipVersion(enum.Enum):
    """Version of a TPU chip."""

    TPU_V2 = "v2"
    TPU_V3 = "v3"
    TPU_V4I = "v4i"
    TPU_V4 = "v4"
    TPU_V5E = "v5e"
    TPU_V5P = "v5p"
    TPU_V6E = "v6e"
    TPU_7 = "7"
    TPU_7X = "7x"
    TPU_8I = "8i"
    TPU_8T = "8t"

    def __str__(self) -> str:
        return self.value


class Tiling(enum.Enum):
    """Layout of arrays in the memory of a TPU."""

    COMPACT = 1
    SPARSE_CORE = 2


class CoreType(enum.Enum):
    """Kind of core of a TPU."""

    TC = "tc"
    SC_SCALAR_SUBCORE = "sc_scalar_subcore"
    SC_VECTOR_SUBCORE = "sc_vector_subcore"


@dataclass(frozen=True, kw_only=True)
class SparseCoreInfo:
    """Figures of the sparse cores of a TPU."""

    num_cores: int
    num_subcores: int
    num_lanes: int
    vmem_capacity_bytes: int
    dma_granule_size_bytes: int


@dataclass(frozen=True, kw_only=True)
class TpuInfo:
    """Figures of a TPU device: one or two of the chip's tensor cores.

    Attributes:
      chip_version, generation: the chip.
      num_cores: tensor cores of the device.
      num_lanes, num_sublanes: shape of a vector register.
      mxu_column_size, num_mxus, num_accumulators: matrix units.
      vmem_capacity_bytes, cmem_capacity_bytes, smem_capacity_bytes: memories of a core.
      hbm_capacity_bytes, mem_bw_bytes_per_second: main memory.
      bf16_ops_per_second, int8_ops_per_second, fp8_ops_per_second, int4_ops_per_second: matrix
        operations; 0 where the dtype is not supported.
      sparse_core: the sparse cores, or ``None``.
    """

    chip_version: ChipVersion
    generation: int
    num_cores: int
    num_lanes: int
    num_sublanes: int
    mxu_column_size: int
    num_mxus: int
    num_accumulators: int
    vmem_capacity_bytes: int
    cmem_capacity_bytes: int
    smem_capacity_bytes: int
    hbm_capacity_bytes: int
    mem_bw_bytes_per_second: int
    bf16_ops_per_second: int
    int8_ops_per_second: int
    fp8_ops_per_second: int
    int4_ops_per_second: int
    sparse_core: SparseCoreInfo | None = None

    @property
    def is_lite(self) -> bool:
        """True for chips with one tensor core for efficient inference."""
        return self.chip_version in _LITE

    @property
    def is_megacore(self) -> bool:
        """True if a device has two tensor cores."""
        return self.num_cores == 2


def get_tpu_info_for_chip(
    chip_version: ChipVersion, num_tensor_cores_per_logical_device: int
) -> TpuInfo:
    """The figures of a device of a chip.

    Args:
      chip_version: the chip.
      num_tensor_cores_per_logical_device: 1, or 2 where two cores are one device (v4, v5p).

    Raises:
      TypeError: for another type of chip.
      ValueError: for a number of cores that the chip does not have.

    >>> get_tpu_info_for_chip(ChipVersion.TPU_V5E, 1).mxu_column_size
    128
    """
    if not isinstance(chip_version, ChipVersion):
        raise TypeError(f"chip_version is a ChipVersion, got {chip_version!r}")
    cores = num_tensor_cores_per_logical_device
    supported = (1, 2) if chip_version in _MEGACORE else (1,)
    if cores not in supported:
        raise ValueError(
            f"a device of the chip {chip_version} has {' or '.join(map(str, supported))} tensor "
            f"cores, got {cores}"
        )
    row = _CHIPS[chip_version]
    figures: dict[str, Any] = dict(zip(_COLUMNS, row[:-1]))
    sparse = None if row[-1] is None else SparseCoreInfo(**dict(zip(_SPARSE_COLUMNS, row[-1])))
    return TpuInfo(
        chip_version=chip_version, num_cores=cores, num_lanes=128, sparse_core=sparse, **figures
    )


def get_tpu_info() -> TpuInfo:
    """The figures of the default device.

    Raises:
      ValueError: if it is no TPU.
    """
    device = devices()[0]
    kind = str(device.device_kind)
    if device.platform != "tpu" or kind not in _KINDS:
        raise ValueError(
            f"get_tpu_info: the default device is {kind!r}, no TPU that is known; "
            "get_tpu_info_for_chip has the figures of a chip"
        )
    return get_tpu_info_for_chip(*_KINDS[kind])


_V = ChipVersion
_LITE: Final = {_V.TPU_V4I, _V.TPU_V5E, _V.TPU_V6E}
_MEGACORE: Final = {_V.TPU_V4, _V.TPU_V5P}
_KINDS: Final = {
    "TPU v2": (_V.TPU_V2, 1), "TPU v3": (_V.TPU_V3, 1), "TPU v4": (_V.TPU_V4, 2),
    "TPU v4 lite": (_V.TPU_V4I, 1), "TPU v5": (_V.TPU_V5P, 2), "TPU v5p": (_V.TPU_V5P, 2),
    "TPU v5 lite": (_V.TPU_V5E, 1), "TPU v5e": (_V.TPU_V5E, 1), "TPU v6 lite": (_V.TPU_V6E, 1),
    "TPU v6e": (_V.TPU_V6E, 1), "TPU7": (_V.TPU_7, 1), "TPU7x": (_V.TPU_7X, 1),
}  # fmt: skip
_COLUMNS: Final = (
    "generation", "num_sublanes", "mxu_column_size", "num_mxus", "num_accumulators",
    "vmem_capacity_bytes", "cmem_capacity_bytes", "smem_capacity_bytes", "hbm_capacity_bytes",
    "mem_bw_bytes_per_second", "bf16_ops_per_second", "int8_ops_per_second", "fp8_ops_per_second",
    "int4_ops_per_second",
)  # fmt: skip
_SPARSE_COLUMNS: Final = (
    "num_cores",
    "num_subcores",
    "num_lanes",
    "vmem_capacity_bytes",
    "dma_granule_size_bytes",
)
_Ki, _Mi = 1 << 10, 1 << 20
_M, _G, _T = 10**6, 10**9, 10**12
_7 = (
    7, 8, 256, 2, 128, 64 * _Mi, 0, _Mi, 103 * _G, 3700 * _G, 1155 * _T, 0, 2300 * _T, 0,
    (2, 16, 16, 512 * _Ki, 32),
)  # fmt: skip
_CHIPS: Final[dict[ChipVersion, tuple[Any, ...]]] = {
    _V.TPU_V2: (
        2, 8, 128, 1, 0, 16 * _Mi, 0, 16 * _Ki, 8 * _G, 358 * _G, 23 * _T, 0, 0, 0, None
    ),
    _V.TPU_V3: (
        3, 8, 128, 2, 0, 16 * _Mi, 0, 16 * _Ki, 17200 * _M, 412500 * _M, 70 * _T, 0, 0, 0, None
    ),
    _V.TPU_V4I: (
        4, 8, 128, 4, 0, 16 * _Mi, 134 * _M, _Mi, 8590 * _M, 614 * _G, 137 * _T, 0, 0, 0, None
    ),
    _V.TPU_V4: (
        4, 8, 128, 4, 0, 16 * _Mi, 67 * _M, _Mi, 17200 * _M, 615 * _G, 137500 * _G, 0, 0, 0, None
    ),
    _V.TPU_V5E: (
        5, 8, 128, 4, 0, 128 * _Mi, 0, _Mi, 17200 * _M, 820 * _G, 197 * _T, 394 * _T, 0, 788 * _T,
        None,
    ),
    _V.TPU_V5P: (
        5, 8, 128, 4, 0, 64 * _Mi, 0, _Mi, 51500 * _M, 1230 * _G, 229500 * _G, 459 * _T, 0,
        920 * _T, (4, 16, 8, 512 * _Ki, 32),
    ),
    _V.TPU_V6E: (
        6, 8, 256, 2, 0, 128 * _Mi, 0, _Mi, 34400 * _M, 1640 * _G, 920 * _T, 1840 * _T, 920 * _T,
        3680 * _T, (2, 16, 8, 256 * _Ki, 32),
    ),
    _V.TPU_7: _7,
    _V.TPU_7X: _7,
    _V.TPU_8I: (
        8, 8, 256, 2, 256, 192 * _Mi, 0, _Mi, 154500 * _M, 4300 * _G, 550500 * _G, 0, 4404 * _T, 0,
        (1, 4, 16, 512 * _Ki, 64),
    ),
    _V.TPU_8T: (
        8, 16, 256, 2, 256, 128 * _Mi, 0, _Mi, 231 * _G, 6400 * _G, 996100 * _G, 996100 * _G,
        5976900 * _G, 11953800 * _G, (2, 16, 16, 256 * _Ki, 64),
    ),
}  # fmt: skip
