"""Discharge of references in loops and conditionals.

A reference that the body only reads remains a constant of the loop. A written reference becomes a
carry. A scanned reference becomes a slice of its array in each step; the slices are stacked if the
reference is written.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..._base.config import state
from ..._engine.discharge import Refs, apply_rule, discharged, distinct, placed
from ..._ir.avals import ShapedArray
from ..._ir.jaxpr import Jaxpr
from ..._ir.primitive import Primitive, discharge
from ..._ir.ref_types import is_ref
from ..._trace.core import typeof
from ..._trace.refs import read_whole, write_whole
from ..._trace.staging import eval_jaxpr, stage, stage_with_aux
from ..._transform.batching import batch_jaxpr, move_axis
from ..._transform.derived import derive_from_jaxpr
from .bodies import permuted
from .cond import cond_p
from .scan import scan_p
from .while_loop import while_p


@scan_p.rule(discharge)
def _scan_discharge(refs, args, *, jaxpr, num_consts, num_carry, **params):
    body_without = discharged(jaxpr, refs)
    numbers = distinct(refs, refs)
    values = distinct(refs, args)
    nc = num_consts - (len(refs) - len(numbers))
    scanned = set(numbers[nc + num_carry :])
    carried = [i for i in range(nc) if numbers[i] in body_without.written]
    read = [i for i in range(nc) if i not in carried]
    n_in, n_out = len(numbers), len(jaxpr.outvars)
    new = {r: n_out + k for k, r in enumerate(body_without.written)}
    new_carry = [numbers[i] for i in carried]
    new_xs = [r for r in body_without.written if r in scanned]
    body = derive_from_jaxpr(
        body_without.jaxpr, "discharged scan", (nc, num_carry),
        lambda: permuted(
            body_without.jaxpr,
            [*read, *range(nc, nc + num_carry), *carried, *range(nc + num_carry, n_in)],
            [*range(num_carry), *(new[r] for r in new_carry), *range(num_carry, n_out),
             *(new[r] for r in new_xs)],
        ),
    )  # fmt: skip
    outs = scan_p.bind(
        *(values[i] for i in read), *values[nc : nc + num_carry], *(values[i] for i in carried),
        *values[nc + num_carry :], jaxpr=body, num_consts=len(read),
        num_carry=num_carry + len(carried), **params,
    )  # fmt: skip
    k, n_ys = num_carry + len(carried), n_out - num_carry
    results = [*outs[:num_carry], *outs[k : k + n_ys]]
    finals = [*outs[num_carry:k], *outs[k + n_ys :]]
    return results, placed(refs, [*new_carry, *new_xs], finals)


class _Loop:
    """A ``while`` loop with numbered references, of which the written ones are carries."""

    def __init__(self, refs: Refs, cond: Jaxpr, body: Jaxpr, nc: int, nb: int):
        n = len(refs) - nc - nb
        self.cond = discharged(cond, (*refs[:nc], *[None] * n))
        self.body = discharged(body, (*refs[nc : nc + nb], *[None] * n))
        self.written = list(dict.fromkeys((*self.cond.written, *self.body.written)))
        self.nc, self.nb, self.n = nc, nb, n
        self.refs = refs
        self.avals: dict[int, ShapedArray] = {}
        for v, r in zip([*cond.invars[:nc], *body.invars[:nb]], refs):
            if r is not None:
                aval: Any = v.aval
                self.avals[r] = aval.inner_aval

    def constants(self, part: Refs) -> list[int]:
        """Indices of the operands that remain constants: those that are not written."""
        return [i for i, r in enumerate(part) if r is None or r not in self.written]

    def run(self, which: str, consts: Sequence[Any], carry: Sequence[Any], contents: Sequence[Any]):
        """The results of the condition or the body, and the new values of written references."""
        program, part = (
            (self.cond, self.refs[: self.nc])
            if which == "cond"
            else (self.body, self.refs[self.nc : self.nc + self.nb])
        )
        now = dict(zip(self.written, contents))
        constants = dict(zip(self.constants(part), consts))
        values = [now[r] if r in now else constants[i] for i, r in enumerate(part)]
        outs = eval_jaxpr(program.jaxpr, [*distinct(part, values), *carry])
        n_outs = len(outs) - len(program.written)
        now.update(zip(program.written, outs[n_outs:]))
        return outs[:n_outs], [now[r] for r in self.written]


@while_p.rule(discharge)
def _while_discharge(refs, args, *, cond_jaxpr, body_jaxpr, cond_nconsts, body_nconsts):
    loop: _Loop = derive_from_jaxpr(
        body_jaxpr, "discharged loop", (cond_jaxpr, refs, discharge.version),
        lambda: _Loop(refs, cond_jaxpr, body_jaxpr, cond_nconsts, body_nconsts),
    )  # fmt: skip
    nc, nb = cond_nconsts, body_nconsts
    c_at = loop.constants(refs[:nc])
    b_at = loop.constants(refs[nc : nc + nb])
    c_consts, b_consts = [args[i] for i in c_at], [args[nc + i] for i in b_at]
    carry = list(args[nc + nb :])
    values: dict[Any, Any] = {}
    for r, a in zip(refs, args):
        values.setdefault(r, a)
    contents = [values[r] for r in loop.written]
    tests = bool(loop.cond.written)
    cond, body = derive_from_jaxpr(
        body_jaxpr, "discharged loop programs", (cond_jaxpr, refs, discharge.version),
        lambda: _loop_programs(loop, cond_jaxpr, body_jaxpr, c_at, b_at, tests),
    )  # fmt: skip
    first: list[Any] = []
    if tests:
        # The condition writes: evaluate it before the loop and at the end of each iteration.
        first, contents = loop.run("cond", c_consts, carry, contents)
        b_consts = [*c_consts, *b_consts]
        c_consts = []
    outs = while_p.bind(
        *c_consts, *b_consts, *first, *carry, *contents, cond_jaxpr=cond, body_jaxpr=body,
        cond_nconsts=len(c_consts), body_nconsts=len(b_consts),
    )  # fmt: skip
    outs = outs[len(first) :]
    return outs[: loop.n], placed(refs, loop.written, outs[loop.n :])


def _loop_programs(loop: _Loop, cond, body, c_at, b_at, tests: bool) -> tuple[Jaxpr, Jaxpr]:
    def plain(v):
        aval: Any = v.aval
        return aval.inner_aval if is_ref(aval) else aval

    c_avals = [plain(cond.invars[i]) for i in c_at]
    b_avals = [plain(body.invars[i]) for i in b_at]
    carry = [v.aval for v in body.invars[loop.nb :]]
    contents = [loop.avals[r] for r in loop.written]
    nc, nb, n = len(c_at), len(b_at), loop.n
    if not tests:
        test = stage(
            lambda *a: loop.run("cond", a[:nc], a[nc : nc + n], a[nc + n :])[0],
            [*c_avals, *carry, *contents], cond.debug_info,
        )  # fmt: skip

        def step(*a):
            outs, now = loop.run("body", a[:nb], a[nb : nb + n], a[nb + n :])
            return [*outs, *now]

        return test, stage(step, [*b_avals, *carry, *contents], body.debug_info)

    go = cond.outvars[0].aval

    def step_and_test(*a):
        cc, bc, (_, *rest) = a[:nc], a[nc : nc + nb], a[nc + nb :]
        outs, now = loop.run("body", bc, rest[:n], rest[n:])
        pred, now = loop.run("cond", cc, outs, now)
        return [*pred, *outs, *now]

    test = stage(lambda p, *_: [p], [go, *carry, *contents], cond.debug_info)
    return test, stage(step_and_test, [*c_avals, *b_avals, go, *carry, *contents], body.debug_info)


@cond_p.rule(discharge)
def _cond_discharge(refs, args, *, branches, **params):
    part = refs[1:]
    without_refs = [discharged(b, part) for b in branches]
    changed = list(dict.fromkeys(r for f in without_refs for r in f.written))
    programs = derive_from_jaxpr(
        branches[0], "discharged branches", (part, tuple(branches[1:]), discharge.version),
        lambda: tuple(_branch(b, f, part, changed) for b, f in zip(branches, without_refs)),
    )  # fmt: skip
    outs = cond_p.bind(args[0], *distinct(part, args[1:]), branches=programs, **params)
    n = len(branches[0].outvars)
    return outs[:n], [None, *placed(part, changed, outs[n:])]


def _branch(branch: Jaxpr, without_refs: Any, part: Refs, changed: Sequence[int]) -> Jaxpr:
    """A branch that returns the values of all references that any branch writes."""
    if list(without_refs.written) == list(changed):
        return without_refs.jaxpr
    numbers = distinct(part, part)

    def run(*args):
        outs = eval_jaxpr(without_refs.jaxpr, args)
        n = len(outs) - len(without_refs.written)
        contents = {r: a for r, a in zip(numbers, args) if r is not None}
        contents.update(zip(without_refs.written, outs[n:]))
        return [*outs[:n], *(contents[r] for r in changed)]

    return stage(run, without_refs.jaxpr.in_avals, branch.debug_info)


# Batches whose examples take different branches: the written values are selected afterwards.


def batch_discharged(
    prim: Primitive, axis: Any, args: Sequence[Any], dims: Sequence[Any], params: dict[str, Any]
) -> tuple[list[Any], list[Any]]:
    """Batching rule that batches the discharged operation."""
    trace = state.trace
    numbers: dict[int, int] = {}
    avals: list[Any] = [typeof(a) for a in args]
    refs = tuple(
        numbers.setdefault(id(a), len(numbers)) if is_ref(t) else None for a, t in zip(args, avals)
    )
    examples = [
        t if d is None else t.without_axis(d)
        for t, d in zip((t.inner_aval if is_ref(t) else t for t in avals), dims)
    ]

    def run(*values):
        outs, new = apply_rule(prim, refs, values, params)
        changed = [i for i, x in enumerate(new) if x is not None]
        return [*outs, *(new[i] for i in changed)], changed

    pure, changed = stage_with_aux(run, examples)
    required_dims = [None] * (len(pure.outvars) - len(changed)) + [dims[i] for i in changed]
    program, out_dims = batch_jaxpr(pure, tuple(dims), axis)
    values = [a if r is None else read_whole(trace, a) for a, r in zip(args, refs)]
    outs = eval_jaxpr(program, values)
    n = len(outs) - len(changed)
    for i, x, d, w in zip(changed, outs[n:], out_dims[n:], required_dims[n:]):
        if w is None and d is not None:
            raise ValueError(
                f"performing writes in {prim.name} with a vmapped value on an unbatched array "
                f"reference of type {avals[i]}. Move the array reference to be an argument of the "
                "mapped function, or make it inside."
            )
        write_whole(trace, args[i], x if w is None else move_axis(x, d, w, axis.size))
    return outs[:n], list(out_dims[:n])
