"""Sizes of blocks where a caller gives none, by the platform.

On a CPU independent steps are computed together and XLA tiles operations itself, so that large
blocks, often whole arrays, are best. On GPUs a step is a program, whose blocks are in registers and
shared memory. On TPUs blocks are in vector memory, two of each: those of the next step are copied
meanwhile, so that large ones hide the copies. Mosaic accepts sizes that are multiples of 8 along
the last axis but one and of 128 along the last one, or whole axes.
"""

from __future__ import annotations

from primax_core import default_backend

_TPU_BLOCK = 1 << 17
"""Elements of a block of whole rows on a TPU: 512 KiB of ``float32``."""


def is_cpu() -> bool:
    """True if kernels are compiled for CPUs by default."""
    return default_backend() == "cpu"


def is_tpu() -> bool:
    """True if kernels are compiled for TPUs by default."""
    return default_backend() == "tpu"


def _power_of_two(n: int) -> int:
    return 1 << max(n - 1, 0).bit_length()


def _tpu_rows(size: int, most: int = 1024) -> int:
    """Rows of a block of whole rows on a TPU, a multiple of 8."""
    return max(min(_TPU_BLOCK // max(size, 1), most) // 8 * 8, 8)


def matmul_block(m: int, k: int, n: int, bits: int) -> tuple[int, int, int]:
    """Rows, summed elements and columns of a step of a matrix product."""
    if is_cpu():
        return max(m, 1), max(k, 1), max(n, 1)
    if is_tpu():
        return 512, 512, 512
    return 128 if m > 64 else 64, max(256 // max(bits // 4, 1), 16), 128 if n > 64 else 64


def rows_block(rows: int, size: int) -> int:
    """Rows of a step that needs whole rows."""
    if is_cpu():
        return max(rows, 1)
    if is_tpu():
        return _tpu_rows(size)
    return max(min(4096 // _power_of_two(size), _power_of_two(rows)), 1)


def attention_block(queries: int, keys: int, size: int) -> tuple[int, int]:
    """Queries and keys of a step of attention."""
    if is_cpu():
        return 128, 512
    if is_tpu():
        return 256, 512
    return 128 if size <= 64 else 64, 64


def attention_backward_block(queries: int, keys: int, size: int) -> tuple[int, int]:
    """Queries and keys of a step of the derivative of attention."""
    if is_cpu():
        return 128, 256
    if is_tpu():
        return 256, 256
    return 64, 64


def vocabulary_block(rows: int, size: int) -> tuple[int, int]:
    """Rows and classes of a step of a loss."""
    if is_cpu():
        return max(rows, 1), max(size, 1)
    if is_tpu():
        return 128, 1024
    return 4, 1024


def linear_vocabulary_block(rows: int, size: int, width: int) -> tuple[int, int]:
    """Rows and classes of a step of a loss whose logits are a product of rows of a width."""
    if is_cpu():
        return 512, 1024
    if is_tpu():  # blocks have whole rows and columns
        n = max(_TPU_BLOCK * 2 // max(width, 1) // 128 * 128, 128)
        return min(n, 256), min(n, 512)
    return 64, 64


def scan_block(rows: int, size: int) -> tuple[int, int]:
    """Rows and elements of a step of a cumulative sum."""
    if is_cpu():
        return max(rows, 1), max(size, 1)
    if is_tpu():
        return 64, 512
    return 1, 1024


def recurrence_block(length: int, channels: int) -> tuple[int, int]:
    """Positions and channels of a step of a recurrence."""
    if is_cpu():
        return max(length, 1), max(channels, 1)
    return 128, 128


def group_rows(rows: int, groups: int) -> int:
    """Rows of a tile of a grouped matrix product."""
    mean = max(rows // max(groups, 1), 1)
    if is_cpu():
        return min(max(_power_of_two(mean) // 2, 8), 128)
    if is_tpu():
        return min(max(_power_of_two(mean) // 2, 8), 256)
    return 64 if mean > 32 else 16
