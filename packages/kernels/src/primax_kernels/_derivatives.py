"""Forward derivatives of kernels: kernels whose references have tangents beside them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

import numpy as np

from primax_core import dtypes
from primax_core.extend import AbstractRef, Jaxpr, MissingRule, UnsupportedRule, jvp_jaxpr

from ._block_mapping import BlockMapping
from ._emission.usage import accesses_of
from ._error_texts import reason_of
from ._kernel import Kernel

T = TypeVar("T")


@dataclass(frozen=True, eq=False, repr=False)
class JvpKernel(Kernel):
    """A kernel that computes values and tangents.

    Its operands are those of its original, then the tangents of some of them; its results are
    those of its original, then the tangents of the floating-point ones. On arrays it is the
    derivative of its original's expansion.

    Attributes:
      original: the kernel of the values.
      active: for each operand of the original, whether it has a tangent.
    """

    original: Kernel
    active: tuple[bool, ...]

    @property
    def out_mask(self) -> tuple[bool, ...]:
        """For each result of the original, whether it has a tangent."""
        return tuple(_is_float(m.aval) for m in self.original.outputs)


def jvp_kernel(kernel: Kernel, active: Sequence[bool]) -> JvpKernel | str:
    """The kernel of values and tangents, or the reason for which there is none.

    Args:
      active: for each operand, whether it has a tangent. Operands that results begin with have one
        if their result has.
    """
    key = tuple(active)
    kernels: dict[Any, JvpKernel | str] = vars(kernel).setdefault("_jvp", {})
    if key not in kernels:
        kernels[key] = _derived(kernel, key)
    return kernels[key]


def active_operands(kernel: Kernel, nonzero: Sequence[bool]) -> tuple[bool, ...]:
    """The operands with a tangent: those that have one, and aliases of results that have one."""
    active = list(nonzero)
    for i, o in kernel.aliases:
        active[i] = active[i] or _is_float(kernel.outputs[o].aval)
    return tuple(active)


def _derived(kernel: Kernel, active: tuple[bool, ...]) -> JvpKernel | str:
    n = len(kernel.prefetched)
    if any(active[:n]):
        return "a prefetched scalar has a tangent"
    if not any(map(_is_float, kernel.out_avals)):
        return "no result has a floating-point dtype"
    ids, refs = len(kernel.grid), len(kernel.jaxpr.invars) - len(kernel.grid)
    of_inputs = {v: i for i, v in enumerate(kernel.jaxpr.invars[ids + n :][: len(kernel.inputs)])}
    if any(a.writes for a in accesses_of(kernel.jaxpr, of_inputs)):
        return "the kernel writes into blocks of its operands"
    inputs, outputs, scratch = active[n:], _floats(kernel.outputs), _float_refs(kernel.scratch)
    mask = (*[False] * (ids + n), *inputs, *outputs, *scratch)
    assert len(mask) == ids + refs
    try:
        both, _ = jvp_jaxpr(kernel.jaxpr, mask)
    except (MissingRule, UnsupportedRule, NotImplementedError) as error:
        return reason_of(error)
    changes: dict[str, Any] = {
        "name": f"{kernel.name}_jvp",
        "inputs": (*kernel.inputs, *map(_tangent, _marked(kernel.inputs, inputs))),
        "outputs": (*kernel.outputs, *map(_tangent, _marked(kernel.outputs, outputs))),
        "scratch": (*kernel.scratch, *_marked(kernel.scratch, scratch)),
        "aliases": _aliases(kernel, active, outputs),
        "jaxpr": _in_order(both, ids + n, (inputs, outputs, scratch)),
    }
    attributes = {f.name: getattr(kernel, f.name) for f in fields(Kernel)}
    return JvpKernel(**{**attributes, **changes}, original=kernel, active=active)


def _is_float(aval: Any) -> bool:
    return bool(dtypes.issubdtype(aval.dtype, np.inexact))


def _floats(mappings: Sequence[BlockMapping]) -> tuple[bool, ...]:
    return tuple(_is_float(m.aval) for m in mappings)


def _float_refs(refs: Sequence[AbstractRef]) -> tuple[bool, ...]:
    return tuple(_is_float(r.inner_aval) for r in refs)


def _marked(values: Sequence[T], mask: Sequence[bool]) -> list[T]:
    return [x for x, m in zip(values, mask) if m]


def _tangent(mapping: BlockMapping) -> BlockMapping:
    return replace(mapping, name=f"the tangent of {mapping.name}")


def _aliases(
    kernel: Kernel, active: Sequence[bool], outputs: Sequence[bool]
) -> tuple[tuple[int, int], ...]:
    """Pairs of operands and results; tangents of both are a pair too."""
    aliases = list(kernel.aliases)
    for i, o in kernel.aliases:
        if outputs[o]:
            tangent_in = len(active) + sum(active[:i])
            aliases.append((tangent_in, len(outputs) + sum(outputs[:o])))
    return tuple(aliases)


def _in_order(jaxpr: Jaxpr, leading: int, masks: tuple[Sequence[bool], ...]) -> Jaxpr:
    """The jaxpr with the tangents of operands, results and scratch memory behind each of them.

    Args:
      leading: the number of arguments before the operands.
      masks: which operands, results and references to scratch memory have tangents.
    """
    primals = leading + sum(map(len, masks))
    invars, start, tangents = list(jaxpr.invars[:leading]), leading, primals
    for mask in masks:
        invars += jaxpr.invars[start : start + len(mask)]
        invars += jaxpr.invars[tangents : tangents + sum(mask)]
        start, tangents = start + len(mask), tangents + sum(mask)
    return Jaxpr(jaxpr.constvars, jaxpr.consts, invars, jaxpr.outvars, jaxpr.eqns)
