"""Kernels that ship with the wheel: products, normalisations, attention, losses, recurrences.

Modules are loaded when one of their functions is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from ._attention import flash_attention as flash_attention
    from ._cross_entropy import cross_entropy as cross_entropy
    from ._cumsum import cumsum as cumsum
    from ._grouped_matmul import grouped_matmul as grouped_matmul
    from ._linear_cross_entropy import linear_cross_entropy as linear_cross_entropy
    from ._matmul import matmul as matmul
    from ._normalization import layer_norm as layer_norm, rms_norm as rms_norm
    from ._paged_attention import paged_attention as paged_attention
    from ._quantized_matmul import quantize as quantize, quantized_matmul as quantized_matmul
    from ._recurrence import linear_recurrence as linear_recurrence
    from ._rope import rope as rope
    from ._softmax import softmax as softmax
    from ._top_k import top_k as top_k

_MODULES: Final = {
    "cross_entropy": "_cross_entropy",
    "cumsum": "_cumsum",
    "flash_attention": "_attention",
    "grouped_matmul": "_grouped_matmul",
    "layer_norm": "_normalization",
    "linear_cross_entropy": "_linear_cross_entropy",
    "linear_recurrence": "_recurrence",
    "matmul": "_matmul",
    "paged_attention": "_paged_attention",
    "quantize": "_quantized_matmul",
    "quantized_matmul": "_quantized_matmul",
    "rms_norm": "_normalization",
    "rope": "_rope",
    "softmax": "_softmax",
    "top_k": "_top_k",
}
"""Module of each public function."""


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    function = getattr(importlib.import_module(f".{_MODULES[name]}", __name__), name)
    globals()[name] = function
    return function


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})
