"""``ptx_call``: a kernel in PTX, the assembly language of NVIDIA GPUs, on arrays."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from primax_core import tree_util
from primax_core.extend import Primitive, abstract, lower, native

from .._typing import Types
from .errors import TritonError
from .lowering import current_target
from .python_functions import grid_of
from .triton_call import out_aval

ptx_call_p: Final[Primitive] = Primitive("ptx_call", multiple_results=True)

TARGET: Final = "__gpu$xla.gpu.ptx"
"""XLA's name of kernels in PTX. The driver compiles them when the program is loaded."""

_ENTRY: Final = re.compile(r"\.entry\s+([\w$]+)\s*(?:\(([^)]*)\))?")
_ARCHITECTURE: Final = re.compile(r"^\s*\.target\s+sm_(\d+)([af]?)", re.MULTILINE)
_COMMENT: Final = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_MAX_BLOCK: Final = (1024, 1024, 64)
_MAX_THREADS: Final = 1024
_MAX_SHARED: Final = 232448


@ptx_call_p.rule(abstract)
def _abstract(*avals: Any, out_avals: Any, **_: Any) -> list[Any]:
    return list(out_avals)


@ptx_call_p.rule(lower)
def _lower(ctx: Any, *_: Any, name: str, **__: Any) -> Any:
    raise TritonError(
        f"ptx_call of {name} runs on NVIDIA GPUs, and the program is compiled for {ctx.platform}: "
        "pallas_call runs on both"
    )


@ptx_call_p.rule(lower.on("cuda"))
def _lower_on_gpus(
    ctx: Any, *values: Any, text: str, name: str, grid: Sequence[int], block: Sequence[int],
    shared: int, out_avals: Sequence[Any], aliases: Sequence[tuple[int, int]],
) -> list[Any]:  # fmt: skip
    _check_target(text, name, current_target())
    sizes = {f"grid_{a}": n for a, n in zip("xyz", grid)}
    sizes |= {f"block_{a}": n for a, n in zip("xyz", block)}
    sizes["shared_mem_bytes"] = shared
    attributes = {"name": name, "kernel_type": "ptx", "kernel_data": text}
    return native.call(
        ctx, TARGET, values, out_avals, needs=(), input_output_aliases=dict(aliases),
        attributes={**attributes, **{n: np.int32(x) for n, x in sizes.items()}},
    )  # fmt: skip


def ptx_call(
    text: str,
    *args: Any,
    name: str,
    out_shape: Types,
    grid: int | Sequence[int],
    block: int | Sequence[int],
    shared_memory: int = 0,
    input_output_aliases: Mapping[int, int] | None = None,
) -> Any:
    """Run a kernel in PTX on arrays, on an NVIDIA GPU.

    The GPU's driver compiles the text when the program is loaded, and finds errors in its
    instructions; neither XLA nor this function does. There are no derivatives and no batches: use
    `custom_vjp` and `custom_vmap` around the call.

    Args:
      text: the module. Its ``.entry`` has one 64-bit parameter for each array: pointers to the
        operands, then to the results.
      args: arrays, row-major.
      name: name of the ``.entry``.
      out_shape: pytree of shapes and dtypes of the results.
      grid: number of blocks, an integer or a tuple of up to three.
      block: number of threads of a block, an integer or a tuple of up to three; at most 1024.
      shared_memory: bytes of dynamic shared memory of a block.
      input_output_aliases: positions of arrays, and of the results that use their memory.

    Returns:
      Arrays like ``out_shape``.

    Raises:
      TypeError, ValueError: for a text without this entry, an entry with another number of
        parameters, or sizes beyond a GPU's limits.
      TritonError: while lowering, if the platform is no GPU, or the text is for a later one.
    """
    if not isinstance(text, str):
        raise TypeError(f"ptx_call takes PTX as text, got {type(text).__name__}")
    out_avals = tuple(map(out_aval, tree_util.tree_leaves(out_shape)))
    _check_entry(text, name, len(args) + len(out_avals))
    sizes = grid_of(grid, {})
    threads = _block(block)
    if not 0 <= operator.index(shared_memory) <= _MAX_SHARED:
        raise ValueError(f"shared_memory is between 0 and {_MAX_SHARED}, got {shared_memory}")
    outs = ptx_call_p.bind(
        *args, text=text, name=name, grid=sizes, block=threads, shared=int(shared_memory),
        out_avals=out_avals, aliases=tuple(sorted((input_output_aliases or {}).items())),
    )  # fmt: skip
    return tree_util.tree_unflatten(tree_util.tree_structure(out_shape), outs)


def _check_entry(text: str, name: str, arrays: int) -> None:
    """Check the name and the number of parameters, which XLA does not."""
    code = _COMMENT.sub("", text)
    if "\0" in text or ".version" not in code or _ARCHITECTURE.search(code) is None:
        raise ValueError("the text is no PTX: it has .version and .target sm_... in front")
    entries = {m[1]: m[2] or "" for m in _ENTRY.finditer(code)}
    if name not in entries:
        raise ValueError(f"the PTX has no .entry {name}; it has {', '.join(entries) or 'no entry'}")
    n = entries[name].count(".param")
    if n != arrays:
        raise ValueError(
            f"the .entry {name} has {n} parameters, and the call has {arrays} operands and results"
        )


def _check_target(text: str, name: str, target: str | None) -> None:
    match = _ARCHITECTURE.search(_COMMENT.sub("", text))
    if target is None or match is None:
        return
    here = int("".join(c for c in target if c.isdigit()))
    if int(match[1]) > here or (match[2] == "a" and int(match[1]) != here):
        raise TritonError(
            f"the PTX of {name} is for sm_{match[1]}{match[2]}, and the program is compiled for "
            f"{target}"
        )


def _block(block: Any) -> tuple[int, int, int]:
    """Threads of a block along three axes."""
    sizes = block if isinstance(block, Sequence) else (block,)
    try:
        numbers = [operator.index(n) for n in sizes]
    except TypeError:
        raise TypeError(f"block is an integer or a tuple of up to 3, got {block!r}") from None
    numbers += [1] * (3 - len(numbers))
    fits = len(numbers) == 3 and all(1 <= n <= m for n, m in zip(numbers, _MAX_BLOCK))
    if not fits or math.prod(numbers) > _MAX_THREADS:
        raise ValueError(
            f"block is at most {_MAX_BLOCK} with {_MAX_THREADS} threads in all, got {block!r}"
        )
    return numbers[0], numbers[1], numbers[2]
