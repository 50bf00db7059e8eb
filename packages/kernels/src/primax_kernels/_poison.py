"""Contents of scoped memory before the first write."""

from __future__ import annotations

from typing import Any, Final

from primax_core import lax
from primax_core.extend import Primitive, current_trace, expand
from primax_core.extend.references import swap_p
from primax_core.extend.runtime import define_option

from ._memory_spaces import unwritten_value

enable_poison_buffers: Final[Any] = define_option(
    "pallas_poison_buffers",
    bool,
    False,
    "trace",
    "memory of run_scoped begins with NaN on accelerators too",
)
"""The option, and a context manager that sets it: ``with enable_poison_buffers(True): ...``.

Memory of `run_scoped` and the scratch memory of `kernel` begin with NaN (the least integer in
dtypes without NaN) in kernels on CPUs. With the option they do so on GPUs and TPUs too, where
their contents are arbitrary otherwise.
"""

poison_p: Final[Primitive] = Primitive("poison", multiple_results=True)
"""Memory gets the contents of memory before the first write.

``everywhere`` says whether accelerators write them, or may leave the memory as it is.
"""


@poison_p.rule(expand)
def _poison(ref: Any, *, everywhere: bool) -> list[Any]:
    swap_p.bind(ref, lax.full(ref.shape, unwritten_value(ref.dtype), ref.dtype), index=None)
    return []


def poison(ref: Any) -> None:
    """Give memory the contents of memory before the first write."""
    if current_trace() is None:
        ref[...] = lax.full(ref.shape, unwritten_value(ref.dtype), ref.dtype)
    else:
        poison_p.bind(ref, everywhere=enable_poison_buffers.value)
