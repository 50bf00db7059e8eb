"""Programs and operations on references, now: what the references hold is passed to an executable,
which overwrites it where nobody else can see it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

from .._base.config import state
from .._ir.jaxpr import DebugInfo, Jaxpr
from .._ir.primitive import Primitive
from .._runtime import dispatch
from .._runtime.array import ArrayImpl, copy_array
from .._trace.core import Tracer, ref_handlers, set_trace, typeof
from .._trace.references import Ref
from .._trace.staging import eval_jaxpr, stage
from .discharge import Discharged, Refs, discharged, distinct
from .references import belongs as belongs


class _Plan:
    """How a program is run on references.

    Attributes:
      jaxpr: takes arrays; gives first what the written references hold afterwards.
      written: the numbers of those references.
      donated: where they stand among the arguments.
    """

    __slots__ = ("jaxpr", "written", "donated")

    def __init__(self, found: Discharged, refs: Refs, n_outs: int):
        jaxpr = found.jaxpr
        new, outs = jaxpr.outvars[n_outs:], jaxpr.outvars[:n_outs]
        # In the order of the arguments: what is donated is used for the first result that fits.
        numbers = distinct(refs, refs)
        order = sorted(range(len(new)), key=lambda i: numbers.index(found.written[i]))
        self.written = [found.written[i] for i in order]
        self.jaxpr = jaxpr.replace(outvars=[*(new[i] for i in order), *outs])
        self.donated = tuple(numbers.index(r) for r in self.written)


def run(
    jaxpr: Jaxpr, args: Sequence[Any], name: str | None = None, donated: Sequence[int] = (),
    compiler_options: tuple[Any, ...] = (),
) -> list[Any]:  # fmt: skip
    """Run a program some of whose arguments are references.

    Args:
      donated: arguments that are no references, whose buffers results may take over.
    """
    escaped = [a for a in args if isinstance(a, Tracer)]
    if escaped:
        trace = max((t._trace for t in escaped), key=_depth)
        with set_trace(trace):
            return trace.call(jaxpr, list(args), name)
    numbers: dict[int, int] = {}
    refs = tuple(
        numbers.setdefault(id(a), len(numbers)) if type(a) is Ref else None for a in args
    )
    given = distinct(refs, args)
    held: list[Ref] = [a for a in given if type(a) is Ref]
    if any(dispatch.run in eqn.primitive.rules for eqn in jaxpr.eqns):
        with set_trace(None):
            return [dispatch.as_operand(x) for x in eval_jaxpr(jaxpr, args)]
    key = ("refs", state.trace_key, refs)
    plan = jaxpr.cache.get(key)
    if plan is None:
        plan = jaxpr.cache[key] = _Plan(discharged(jaxpr, refs), refs, len(jaxpr.outvars))
    with ExitStack() as locks:
        for ref in sorted(held, key=id):
            locks.enter_context(ref._lock)
        arrays = [_held(a) if type(a) is Ref else dispatch.as_operand(a) for a in given]
        specs = [a._spec for a in arrays]
        also = tuple(_new_places(refs, donated)) if donated else ()
        exe_key = (state.key, also, compiler_options, *specs)
        exe = plan.jaxpr.cache.get(exe_key)
        if exe is None:
            dispatch.check_may_run(name or jaxpr.debug_info.name)
            exe = plan.jaxpr.cache[exe_key] = dispatch.compile_jaxpr(
                plan.jaxpr, specs, name=name or jaxpr.debug_info.name,
                donated=tuple(sorted((*plan.donated, *also))), compiler_options=compiler_options,
            )  # fmt: skip
        for i in plan.donated:
            if given[i]._shared:
                arrays[i] = copy_array(arrays[i])
        outs = exe(arrays)
        n = len(plan.written)
        for i, value in zip(plan.donated, outs[:n]):
            given[i]._value, given[i]._shared = value, False
        return outs[n:]


def _held(ref: Ref) -> ArrayImpl:
    value: ArrayImpl = ref._value
    value._check_alive()
    return value


def _new_places(refs: Refs, donated: Sequence[int]) -> list[int]:
    kept = distinct(refs, list(range(len(refs))))
    return [kept.index(i) for i in donated if refs[i] is None]


def _depth(trace: Any) -> int:
    n = 0
    while trace is not None:
        trace, n = trace.parent, n + 1
    return n


def evaluate(prim: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
    """One operation some of whose operands are references, now."""
    avals = [typeof(a) for a in args]
    cache = prim.executables if prim.cache_on is None else prim.cache_on(params)
    key = ("refs", state.trace_key, tuple(params.items()), *avals)
    jaxpr = cache.get(key)
    if jaxpr is None:
        jaxpr = cache[key] = stage(
            lambda *a: _listed(prim, prim.bind(*a, **params)), avals, DebugInfo("eager", prim.name)
        )
    outs = run(jaxpr, args, params.get("name") or prim.name, (), params.get("compiler_options", ()))
    return outs if prim.multiple_results else outs[0]


def _listed(prim: Primitive, out: Any) -> list[Any]:
    return out if prim.multiple_results else [out]


ref_handlers.update(run=run, evaluate=evaluate)
