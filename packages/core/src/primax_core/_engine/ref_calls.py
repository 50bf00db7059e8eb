"""Eager evaluation of jaxprs and operations on references.

The contents of the references are passed to an executable, which overwrites them if they are not
shared.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

from .._base.config import state
from .._ir.jaxpr import DebugInfo, Jaxpr
from .._ir.primitive import Primitive, discharge as discharge_kind
from .._ir.ref_types import is_ref
from .._runtime import dispatch
from .._runtime.array import ArrayImpl, copy_array
from .._trace.core import Tracer, set_trace, typeof
from .._trace.donation import notify_donation
from .._trace.refs import Ref, check_not_ended
from .._trace.staging import eval_jaxpr, stage
from .discharge import Discharged, Refs, discharged, distinct


class Plan:
    """Plan for the evaluation of a jaxpr on references.

    Attributes:
      jaxpr: takes arrays; its first results are the new contents of the written references.
      refs: the numbers of the references among the arguments of the original jaxpr.
      donated: the positions of the written references among the arguments of ``jaxpr``.
    """

    __slots__ = ("jaxpr", "refs", "donated")

    def __init__(self, result: Discharged, refs: Refs, n_outs: int):
        jaxpr = result.jaxpr
        new, outs = jaxpr.outvars[n_outs:], jaxpr.outvars[:n_outs]
        # In argument order: a donated buffer is used for the first result that fits.
        numbers = distinct(refs, refs)
        order = sorted(range(len(new)), key=lambda i: numbers.index(result.written[i]))
        self.jaxpr: Jaxpr = jaxpr.replace(outvars=[*(new[i] for i in order), *outs])
        self.refs: Refs = refs
        self.donated: tuple[int, ...] = tuple(numbers.index(result.written[i]) for i in order)

    def positions(self, donated: Sequence[int]) -> tuple[int, ...]:
        """Positions in ``jaxpr`` of array arguments of the original jaxpr."""
        originals = distinct(self.refs, list(range(len(self.refs))))
        return tuple([originals.index(i) for i in donated if self.refs[i] is None])

    def execute(self, args: Sequence[Any], find: Callable[[Sequence[Any]], Any]) -> list[Any]:
        """Run on arguments of the original jaxpr; ``find`` returns the executable for the specs."""
        operands = distinct(self.refs, args)
        refs: list[Ref] = [a for a in operands if type(a) is Ref]
        with ExitStack() as locks:
            for ref in sorted(refs, key=id):
                locks.enter_context(ref._lock)
            arrays = [_contents(a) if type(a) is Ref else dispatch.as_operand(a) for a in operands]
            exe = find([a._spec for a in arrays])
            for i in self.donated:
                if operands[i]._shared:
                    arrays[i] = copy_array(arrays[i])
            try:
                outs = exe(arrays)
            except BaseException:
                for i in exe.donated:
                    # The reference may be deleted, or partly changed.
                    if type(operands[i]) is Ref and arrays[i] is operands[i]._value:
                        operands[i]._ended = "a call that failed while it was changing it"
                raise
            n = len(self.donated)
            for i, value in zip(self.donated, outs[:n]):
                operands[i]._value, operands[i]._shared = value, False
        return outs[n:]


def plan_of(jaxpr: Jaxpr, args: Sequence[Any]) -> Plan:
    """Plan for a jaxpr on arguments that include references (or their types)."""
    numbers: dict[int, int] = {}
    refs = tuple(
        numbers.setdefault(i if is_ref(a) else id(a), len(numbers))
        if type(a) is Ref or is_ref(a)
        else None
        for i, a in enumerate(args)
    )
    key = ("refs", state.trace_key, refs, discharge_kind.version)
    plan = jaxpr.cache.get(key)
    if plan is None:
        plan = jaxpr.cache[key] = Plan(discharged(jaxpr, refs), refs, len(jaxpr.outvars))
    return plan


def run(
    jaxpr: Jaxpr, args: Sequence[Any], name: str | None = None, donated: Sequence[int] = (),
    compiler_options: tuple[Any, ...] = (),
) -> list[Any]:  # fmt: skip
    """Run a jaxpr whose arguments include references.

    Args:
      donated: arguments other than references whose buffers are donated.
    """
    escaped = [a for a in args if isinstance(a, Tracer)]
    if escaped:
        trace = max((t._trace for t in escaped), key=_depth)
        with set_trace(trace):
            return trace.call(jaxpr, list(args), name)
    for i in donated:
        notify_donation(args[i])  # before any lock is taken
    plan = plan_of(jaxpr, args)
    also = plan.positions(donated) if donated else ()
    cache = plan.jaxpr.cache

    def find(specs):
        key = (state.key, also, compiler_options, *specs)
        exe = cache.get(key)
        if exe is None:
            called = name or jaxpr.debug_info.name
            dispatch.check_may_run(called)
            # The arguments of a jaxpr with NaNs stay unchanged, for inspection.
            keep_arguments = state.debug_nans or state.debug_infs
            exe = cache[key] = dispatch.compile_jaxpr(
                plan.jaxpr, specs, name=called, compiler_options=compiler_options,
                donated=() if keep_arguments else tuple(sorted((*plan.donated, *also))),
            )  # fmt: skip
        return exe

    return plan.execute(args, find)


def _contents(ref: Ref) -> ArrayImpl:
    check_not_ended(ref)
    value: ArrayImpl = ref._value
    value._check_alive()
    return value


def _depth(trace: Any) -> int:
    n = 0
    while trace is not None:
        trace, n = trace.parent, n + 1
    return n


def run_eagerly(jaxpr: Jaxpr, args: Sequence[Any]) -> list[Any]:
    """Run a jaxpr of the library: equation by equation if an operation has a Python
    implementation.
    """
    if any(dispatch.impl in eqn.primitive.rules for eqn in jaxpr.eqns):
        with set_trace(None):
            return [dispatch.as_operand(x) for x in eval_jaxpr(jaxpr, args)]
    return run(jaxpr, args)


def evaluate(
    prim: Primitive, args: Sequence[Any], params: dict[str, Any], with_results: bool = True
) -> Any:
    """Evaluate one operation whose operands include references.

    Args:
      with_results: return the results.
    """
    avals = [typeof(a) for a in args]
    cache = prim.executables if prim.cache_on is None else prim.cache_on(params)
    key = ("refs", state.trace_key, with_results, tuple(params.items()), *avals)
    jaxpr = cache.get(key)
    if jaxpr is None:

        def operation(*values):
            out = prim.bind(*values, **params)
            return [] if not with_results else out if prim.multiple_results else [out]

        jaxpr = cache[key] = stage(operation, avals, DebugInfo("eager", prim.name))
    outs = run(jaxpr, args, params.get("name") or prim.name, (), params.get("compiler_options", ()))
    return outs if prim.multiple_results or not with_results else outs[0]
