"""Sums along a sequential dimension, computed at once: ``total += f(blocks)`` contracts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from primax_core import lax
from primax_core.extend import (
    Axis,
    Eqn,
    Jaxpr,
    Literal,
    Var,
    batch_jaxpr,
    dce_jaxpr,
    interpret,
    jaxprs_in,
    nbytes,
    stage,
    typeof,
)

from .._block_mapping import INDEX
from .._kernel import Kernel
from .facts import BUDGET, Facts, axis_of, live_bytes
from .folding import eval_folded, scalar_of


class Accumulation(NamedTuple):
    """A kernel whose sequential steps add terms to references.

    Jaxprs take the indices of the grid, the prefetched scalars and the blocks of operands.

    Attributes:
      dimension: the sequential dimension.
      axes: for each operand, the axis along which its block moves with the dimension.
      terms: the terms of one step.
      initial: values of the references before their first term, at the first step.
      finish: the final blocks of the results, from the sums too, at the last step.
    """

    dimension: int
    axes: tuple[int | None, ...]
    terms: Jaxpr
    initial: Jaxpr
    finish: Jaxpr


def accumulation_of(kernel: Kernel, facts: Facts) -> Accumulation | None:
    """The sums of a kernel, if all that its sequential steps do is to add terms."""
    sequential = [d for d, p in enumerate(facts.parallel) if not p]
    if len(sequential) != 1:
        return None
    (k,) = sequential
    if kernel.grid[k] < 2 or _has_effects(kernel.jaxpr):
        return None
    if any(_moves(m, k) for m in kernel.outputs):
        return None
    if not all(m.is_plain for m in (*kernel.inputs, *kernel.outputs)):
        return None
    axes = []
    for m in kernel.inputs:
        axis = axis_of(m, k, kernel.grid)
        if axis is None and _moves(m, k):
            return None
        axes.append(axis)
    steps = _Steps(kernel, k)
    added = steps.added()
    if not added:
        return None
    jaxprs = steps.jaxprs(added)
    if jaxprs is None:
        return None
    accumulation = Accumulation(k, tuple(axes), *jaxprs)
    return accumulation if _fits(kernel, facts, accumulation) else None


def _has_effects(jaxpr: Jaxpr) -> bool:
    return any(not hasattr(effect, "input_index") for effect in jaxpr.effects)


def _moves(mapping: Any, k: int) -> bool:
    """True if the block moves along a dimension, or may do so."""
    return any(form is None or form.coefficients[k] for form in mapping.forms)


def _fits(kernel: Kernel, facts: Facts, accumulation: Accumulation) -> bool:
    """True if the temporaries of all terms at once need no more memory than steps do."""
    steps = kernel.grid[accumulation.dimension]
    columns = math.prod(n for n, p in zip(kernel.grid, facts.parallel) if p)
    terms = accumulation.terms
    temporaries = live_bytes(terms)
    if all(_is_product(terms, v) for v in terms.outvars):
        temporaries -= min(temporaries, sum(nbytes(v.aval) for v in terms.outvars))
    return temporaries * steps * columns <= 2 * BUDGET


def _is_product(jaxpr: Jaxpr, var: Any) -> bool:
    eqn = _producer(jaxpr, var)
    return eqn is not None and eqn.primitive is lax.dot_general_p


def _producer(jaxpr: Jaxpr, var: Any) -> Eqn | None:
    return next((q for q in jaxpr.eqns if any(v is var for v in q.outvars)), None)


class _Steps:
    """The first, the last and any other step of a kernel, with conditions on the step decided."""

    def __init__(self, kernel: Kernel, k: int):
        self.kernel = kernel
        self.k = k
        self.avals = [v.aval for v in kernel.discharged.invars]
        self.n_args = len(self.avals) - len(kernel.outputs) - len(kernel.scratch)
        self.n_operands = self.n_args - len(kernel.grid)
        last = kernel.grid[k] - 1
        self.first = self._staged(np.int32(0))
        self.last = self._staged(np.int32(last))
        self.other = self._staged(None) if last > 1 else self.last

    def _staged(self, step: Any) -> Jaxpr:
        """A step as a function from all arguments to the final contents of results and scratch."""
        last = self.kernel.grid[self.k] - 1

        def run(*args: Any) -> list[Any]:
            values = list(args)
            number = values[self.k]
            if step is not None:
                values[self.k] = step

            def decide(eqn: Eqn, operands: Sequence[Any]) -> Any:
                """Comparisons of the step's number with those of the first and the last."""
                name = eqn.primitive.name
                if step is not None or name not in ("eq", "ne"):
                    return None
                others = [scalar_of(x) for x in operands if x is not number]
                if len(others) != 1 or others[0] is None or 0 < others[0] < last:
                    return None
                return np.bool_(name == "ne")

            return eval_folded(self.kernel.discharged, values, decide)[self.n_operands :]

        return stage(run, self.avals)

    def added(self) -> list[tuple[int, Var]]:
        """References to which a step adds, with the term."""
        added = []
        jaxpr = self.other
        for i, out in enumerate(jaxpr.outvars):
            ref = jaxpr.invars[self.n_args + i]
            eqn = _producer(jaxpr, out)
            if eqn is not None and eqn.primitive.name == "add" and ref in eqn.invars:
                (term,) = [v for v in eqn.invars if v is not ref] or [None]
                if isinstance(term, Var) and term.aval is ref.aval and self._free(jaxpr, [term]):
                    added.append((i, term))
        return added

    def jaxprs(self, added: Sequence[tuple[int, Var]]) -> tuple[Jaxpr, Jaxpr, Jaxpr] | None:
        """The jaxprs of an `Accumulation`, or ``None`` if a step does something else."""
        terms = _with_results(self.other, [t for _, t in added])
        keys = [_key(_with_results(self.other, [t])) for _, t in added]
        initial, sums = [], []
        for (i, _), one in zip(added, keys):
            final = self.first.outvars[i]
            eqn = _producer(self.first, final)
            value = self._beside(self.first, eqn, one)
            if value is None:
                return None
            initial.append(value)
            ref = self.last.invars[self.n_args + i]
            users = [q for q in self.last.eqns if ref in q.invars]
            if len(users) != 1 or self._beside(self.last, users[0], one) is not ref:
                return None
            sums.append(users[0])
        start = self._of_values(self.first, initial)
        finish = self._finish(sums)
        if finish is None or not self._unused(start) or not self._unused(terms):
            return None
        return terms, start, finish

    def _beside(self, jaxpr: Jaxpr, eqn: Eqn | None, term: Any) -> Any:
        """The operand that a term is added to."""
        if eqn is None or eqn.primitive.name != "add":
            return None
        for x, y in (eqn.invars, eqn.invars[::-1]):
            if isinstance(y, Var) and _key(_with_results(jaxpr, [y])) == term:
                return x
        return None

    def _of_values(self, jaxpr: Jaxpr, values: Sequence[Any]) -> Jaxpr:
        return _with_results(jaxpr, values)

    def _finish(self, sums: Sequence[Eqn]) -> Jaxpr | None:
        """The last step, whose sums are arguments."""
        avals = [q.outvars[0].aval for q in sums]
        n = len(self.avals)

        def run(*args: Any) -> list[Any]:
            totals = {id(q): x for q, x in zip(sums, args[n:])}

            def evaluate(eqn: Eqn, operands: Sequence[Any]) -> Sequence[Any]:
                if id(eqn) in totals:
                    return [totals[id(eqn)]]
                results = eqn.primitive.bind(*operands, **eqn.params)
                return results if eqn.primitive.multiple_results else [results]

            return interpret(self.last, args[:n], evaluate)[: len(self.kernel.outputs)]

        jaxpr = stage(run, [*self.avals, *avals])
        keep = [True] * len(jaxpr.outvars)
        jaxpr, used = dce_jaxpr(jaxpr, keep, keep_inputs=True)
        _, used = dce_jaxpr(jaxpr, keep)
        return jaxpr if not any(used[self.n_args : n]) else None

    def _free(self, jaxpr: Jaxpr, values: Sequence[Any]) -> bool:
        return self._unused(_with_results(jaxpr, values))

    def _unused(self, jaxpr: Jaxpr) -> bool:
        """True if no contents of references before the step are used."""
        _, used = dce_jaxpr(jaxpr, [True] * len(jaxpr.outvars))
        return not any(used[self.n_args : len(self.avals)])


def _key(jaxpr: Jaxpr) -> tuple[Any, ...]:
    """A key that equal programs have: the text, and the constants, which the text only names."""
    constants: list[int] = []
    pending = [jaxpr]
    while pending:
        one = pending.pop()
        constants += map(id, one.consts)
        pending += [inner for eqn in one.eqns for inner in jaxprs_in(eqn.params)]
    return str(jaxpr), tuple(constants)


def _with_results(jaxpr: Jaxpr, values: Sequence[Any]) -> Jaxpr:
    """The jaxpr that returns some of its values."""

    def run(*args: Any) -> list[Any]:
        seen: dict[Any, Any] = dict(zip(jaxpr.invars, args))

        def evaluate(eqn: Eqn, operands: Sequence[Any]) -> Sequence[Any]:
            results = eqn.primitive.bind(*operands, **eqn.params)
            results = list(results) if eqn.primitive.multiple_results else [results]
            seen.update(zip(eqn.outvars, results))
            return results

        interpret(jaxpr, args, evaluate)
        return [
            lax.full(v.aval.shape, v.scalar, v.aval.dtype) if isinstance(v, Literal) else seen[v]
            for v in values
        ]

    staged = stage(run, [v.aval for v in jaxpr.invars])
    return dce_jaxpr(staged, [True] * len(values), keep_inputs=True)[0]


# Evaluation


def sums_of(
    accumulation: Accumulation, steps: int, args: Sequence[Any], operands: Sequence[Any],
    read: Any,
) -> list[Any]:  # fmt: skip
    """The sums of the terms over all steps.

    Args:
      args: indices of the grid, and the prefetched scalars.
      operands: for each operand the part of a column, whose axis that moves is split.
      read: function of the operands of one step to their blocks.
    """
    k, n = accumulation.dimension, len(args)
    n_state = len(accumulation.terms.invars) - n - len(operands)

    def terms(*values: Any) -> list[Any]:
        ids, xs = values[:n], values[n:]
        state = [
            lax.full(v.aval.shape, 0, v.aval.dtype) for v in accumulation.terms.invars[-n_state:]
        ]
        return interpret(accumulation.terms, [*ids, *read(ids, xs), *state], _evaluate)

    dims: list[int | None] = [0 if i == k else None for i in range(n)]
    avals = [INDEX if i == k else typeof(x) for i, x in enumerate(args)]
    for x, axis in zip(operands, accumulation.axes):
        aval = typeof(x)
        dims.append(axis)
        shape = tuple(s for i, s in enumerate(aval.shape) if i != axis)
        avals.append(aval.update(shape=shape))
    mapped, out_dims = batch_jaxpr(stage(terms, avals), dims, Axis(steps))
    numbers = lax.iota(np.int32, steps)
    values = [numbers if i == k else x for i, x in enumerate(args)]
    results = {id(v): d for v, d in zip(mapped.outvars, out_dims)}

    def evaluate(eqn: Eqn, values: Sequence[Any]) -> Sequence[Any]:
        if len(eqn.outvars) == 1 and id(eqn.outvars[0]) in results:
            d = results[id(eqn.outvars[0])]
            if eqn.primitive is lax.dot_general_p and d is not None:
                contracted = _contracted(eqn, values, d)
                if contracted is not None:
                    return [_Summed(contracted)]
        return _evaluate(eqn, values)

    return [
        x.value if isinstance(x, _Summed) else _total(x, d, steps)
        for x, d in zip(interpret(mapped, [*values, *operands], evaluate), out_dims)
    ]


class _Summed(NamedTuple):
    """A result that is summed over the steps already."""

    value: Any


def _evaluate(eqn: Eqn, values: Sequence[Any]) -> Sequence[Any]:
    results = eqn.primitive.bind(*values, **eqn.params)
    return results if eqn.primitive.multiple_results else [results]


def _contracted(eqn: Eqn, values: Sequence[Any], d: int) -> Any:
    """A batch of products, summed over the batch axis ``d``: its axes are contracted."""
    (lhs, rhs), (lhs_batch, rhs_batch) = eqn.params["dimension_numbers"]
    if d >= len(lhs_batch):
        return None
    contract = ((*lhs, lhs_batch[d]), (*rhs, rhs_batch[d]))
    batch = (
        tuple(a for i, a in enumerate(lhs_batch) if i != d),
        tuple(a for i, a in enumerate(rhs_batch) if i != d),
    )
    params = {**eqn.params, "dimension_numbers": (contract, batch)}
    return eqn.primitive.bind(*values, **params)


def _total(x: Any, d: int | None, steps: int) -> Any:
    if d is None:
        return lax.mul(x, lax.full(x.shape, steps, typeof(x).dtype))
    return lax.reduce_sum(x, (d,))
