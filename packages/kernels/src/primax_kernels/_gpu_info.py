"""Kinds of NVIDIA GPUs, by NVIDIA's table of compute capabilities."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Final

from primax_core import devices


class GpuVersion(enum.Enum):
    """Products of NVIDIA, by the names of their devices."""

    A10 = "NVIDIA A10"
    A30 = "NVIDIA A30"
    A100 = "NVIDIA A100"
    H100 = "NVIDIA H100"
    H200 = "NVIDIA H200"
    GH200 = "NVIDIA GH200"
    B200 = "NVIDIA B200"
    GB200 = "NVIDIA GB200"
    B300 = "NVIDIA B300"
    GB300 = "NVIDIA GB300"
    GB10 = "NVIDIA GB10"
    L4 = "NVIDIA L4"
    L40 = "NVIDIA L40"
    T4 = "Tesla T4"
    RTX_4090 = "NVIDIA GeForce RTX 4090"
    RTX_PRO_4500 = "NVIDIA RTX PRO 4500"
    RTX_PRO_5000 = "NVIDIA RTX PRO 5000"
    RTX_PRO_6000 = "NVIDIA RTX PRO 6000"
    THOR = "NVIDIA Thor"
    VR200 = "NVIDIA VR200"

    def __str__(self) -> str:
        return self.value


_CAPABILITIES: Final = {
    75: ("T4",),
    80: ("A30", "A100"),
    86: ("A10",),
    89: ("L4", "L40", "RTX_4090"),
    90: ("H100", "H200", "GH200"),
    100: ("B200", "GB200"),
    103: ("B300", "GB300"),
    107: ("VR200",),
    110: ("THOR",),
    120: ("RTX_PRO_4500", "RTX_PRO_5000", "RTX_PRO_6000"),
    121: ("GB10",),
}  # fmt: skip
_BY_VERSION: Final = {GpuVersion[name]: n for n, names in _CAPABILITIES.items() for name in names}


@dataclass(frozen=True, kw_only=True)
class GpuInfo:
    """A kind of GPU.

    Attributes:
      gpu_version: the product; ``None`` if it is not among those of `GpuVersion`.
      arch_name: the compute capability with a point, such as ``"9.0"``.
      compute_capability: the compute capability as an integer, such as 90.
    """

    gpu_version: GpuVersion | None
    arch_name: str
    compute_capability: int


def get_gpu_info_from_version(gpu_version: GpuVersion) -> GpuInfo:
    """The compute capability of a product.

    Raises:
      ValueError: for another object.

    >>> get_gpu_info_from_version(GpuVersion.A10).compute_capability
    86
    """
    if not isinstance(gpu_version, GpuVersion):
        raise ValueError(
            f"{gpu_version!r} is no GpuVersion; there are {', '.join(v.name for v in GpuVersion)}"
        )
    n = _BY_VERSION[gpu_version]
    return GpuInfo(gpu_version=gpu_version, arch_name=f"{n // 10}.{n % 10}", compute_capability=n)


def get_gpu_info() -> GpuInfo:
    """The kind of the first device.

    Raises:
      ValueError: if it is no NVIDIA GPU.
    """
    device = devices()[0]
    capability = getattr(device, "compute_capability", None)
    if device.platform != "gpu" and capability is None:
        raise ValueError(f"the first device is no NVIDIA GPU but {device.device_kind}")
    kind = str(device.device_kind)
    # Names of devices go on after the product, as in "NVIDIA H100 80GB HBM3".
    matches = [v for v in GpuVersion if kind == v.value or kind.startswith(v.value + " ")]
    version = max(matches, key=lambda v: len(v.value), default=None)
    if capability is None:
        if version is None:
            raise ValueError(f"the compute capability of {kind} is unknown")
        return get_gpu_info_from_version(version)
    name = str(capability)
    return GpuInfo(
        gpu_version=version, arch_name=name, compute_capability=int(name.replace(".", ""))
    )
