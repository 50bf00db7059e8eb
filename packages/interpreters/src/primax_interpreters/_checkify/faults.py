"""Run-time checks of jaxprs as values: the first check that failed, and its message.

A *site* is an equation that can fail. A *fault* is its run-time counterpart: a code, the index of
the first site that failed or -1, and values for the message in *slots*. :func:`faulty` rewrites a
jaxpr to return a fault next to its results; rules of the kind ``faults`` do so for operations that
hold jaxprs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from primax_core.extend import (
    Eqn,
    Jaxpr,
    Primitive,
    RuleKind,
    ShapedArray,
    eval_jaxpr,
    expand,
    expanded,
    extended_body,
    interpret,
    invalid_result,
    stage,
    summarize,
    typeof,
)
from primax_core.extend.traces import derive_from_jaxpr
from primax_core.lax import add, argmax, dynamic_index_in_dim, full, ge, select_n

faults: Final[RuleKind[Callable[..., tuple[Any, list[Fault]]]]] = RuleKind(
    "faults",
    "(categories, args, eqn) -> (outs, faults)",
    versioned=True,
    doc="""Application of an operation that holds jaxprs, with the faults of these as results.

    categories: the classes of errors that are wanted.
    args: tracers, one for each operand.
    eqn: the equation.
    Returns a list of results and a list of faults.
    """,
)

error_checks: Final[RuleKind[Callable[..., list[Check]]]] = RuleKind(
    "error_checks",
    "(args, outs, **params) -> list of checks",
    versioned=True,
    doc="""Run-time checks of an operation, for ``checkify``. Those of the expansion come first.

    args: tracers, one for each operand.
    outs: a list of results.
    Returns a list of :class:`Check` objects.
    """,
)


class Site:
    """An equation that can fail.

    Attributes:
      category: the class of the exception.
      describe: from the values of the payload, as NumPy arrays, to the message.
      payload: types of these values.
      place: where in the user's code it is.
    """

    __slots__ = ("category", "describe", "payload", "place")

    def __init__(
        self, category: type[Exception], describe: Callable[..., str],
        payload: tuple[ShapedArray, ...] = (), place: Any = None,
    ):  # fmt: skip
        self.category: type[Exception] = category
        self.describe: Callable[..., str] = describe
        self.payload: tuple[ShapedArray, ...] = payload
        self.place: Any = place

    def message(self, values: Sequence[Any]) -> str:
        """The text for values of the payload."""
        text = self.describe(*values)
        return text if self.place is None else f"{text} (at {summarize(self.place)})"


class Check:
    """One check of an operation.

    Attributes:
      category: the class of the exception.
      failed: computes whether it failed, a boolean scalar; called if the category is wanted.
      describe: from values of the payload to the message.
      payload: computes the values that the message shows, a list.
    """

    __slots__ = ("category", "failed", "describe", "payload")

    def __init__(
        self, category: type[Exception], failed: Callable[[], Any], describe: Callable[..., str],
        payload: Callable[[], Sequence[Any]] = list,
    ):  # fmt: skip
        self.category: type[Exception] = category
        self.failed: Callable[[], Any] = failed
        self.describe: Callable[..., str] = describe
        self.payload: Callable[[], Sequence[Any]] = payload


Slot = tuple[ShapedArray, int]


class Sites:
    """The sites of a program, in its order, and the slots that hold the payload of one of them."""

    __slots__ = ("sites", "slots")

    def __init__(self, sites: tuple[Site, ...]):
        self.sites: tuple[Site, ...] = sites
        most: dict[ShapedArray, int] = {}
        for site in sites:
            for aval in set(site.payload):
                most[aval] = max(most.get(aval, 0), site.payload.count(aval))
        self.slots: tuple[Slot, ...] = tuple((a, k) for a, n in most.items() for k in range(n))

    def __eq__(self, other: object) -> bool:
        return type(other) is Sites and other.sites == self.sites

    def __hash__(self) -> int:
        return hash(self.sites)

    def __len__(self) -> int:
        return len(self.sites)

    def __repr__(self) -> str:
        return f"Sites({len(self.sites)})"

    @property
    def avals(self) -> list[ShapedArray]:
        """Types of the code and of the slots."""
        return [CODE, *(a for a, _ in self.slots)]


CODE: Final = ShapedArray((), np.dtype(np.int32))
NO_SITES: Final = Sites(())


def slots_of(payload: Sequence[ShapedArray]) -> list[Slot]:
    """The slots that values of these types take."""
    seen: dict[ShapedArray, int] = {}
    slots = []
    for aval in payload:
        k = seen[aval] = seen.get(aval, -1) + 1
        slots.append((aval, k))
    return slots


class Fault:
    """Run-time value: the code of the first site that failed, and its payload."""

    __slots__ = ("sites", "code", "values")

    def __init__(self, sites: Sites, code: Any, values: Sequence[Any]):
        self.sites: Sites = sites
        self.code: Any = code
        self.values: list[Any] = list(values)

    @property
    def leaves(self) -> list[Any]:
        """The code and the slots."""
        return [self.code, *self.values]

    @classmethod
    def of(cls, check: Check, place: Any) -> Fault:
        """The fault of one check."""
        payload = check.payload()
        avals = tuple(typeof(x).strip_weak_type() for x in payload)
        sites = Sites((Site(check.category, check.describe, avals, place),))
        return cls.with_payload(sites, select_n(check.failed(), np.int32(-1), np.int32(0)), payload)

    @classmethod
    def with_payload(cls, sites: Sites, code: Any, payload: Sequence[Any]) -> Fault:
        """The fault of a single site."""
        by_slot = dict(zip(slots_of(sites.sites[0].payload), payload))
        return cls(sites, code, [by_slot[s] for s in sites.slots])


def none_of(sites: Sites) -> Fault:
    """No fault."""
    return Fault(sites, np.int32(-1), [_zeros(a) for a, _ in sites.slots])


def joined(faults: Sequence[Fault]) -> Fault:
    """The first of several faults, in the order of the program."""
    faults = [f for f in faults if len(f.sites)]
    if len(faults) == 1:
        return faults[0]
    sites = Sites(tuple(site for f in faults for site in f.sites.sites))
    no_fault = none_of(sites)
    code, values = no_fault.code, dict(zip(sites.slots, no_fault.values))
    base = len(sites)
    for fault in reversed(faults):
        base -= len(fault.sites)
        failed = ge(fault.code, np.int32(0))
        code = select_n(failed, code, add(fault.code, np.int32(base)) if base else fault.code)
        for slot, value in zip(fault.sites.slots, fault.values):
            values[slot] = select_n(failed, values[slot], value)
    return Fault(sites, code, [values[s] for s in sites.slots])


def placed(fault: Fault, sites: Sites, base: int) -> list[Any]:
    """The leaves of a fault renumbered for more sites, of which its own begin at ``base``."""
    by_slot = dict(zip(fault.sites.slots, fault.values))
    code = fault.code
    if base:
        failed = ge(code, np.int32(0))
        code = select_n(failed, code, add(code, np.int32(base)))
    return [code, *(by_slot[s] if s in by_slot else _zeros(s[0]) for s in sites.slots)]


def _zeros(aval: ShapedArray) -> Any:
    return full(aval.shape, 0, aval.dtype)


Categories = frozenset[type[Exception]]


def faulty(jaxpr: Jaxpr, categories: Categories) -> tuple[Jaxpr, Sites]:
    """The jaxpr that returns a fault next to its results, and its sites.

    A jaxpr without sites returns no fault.
    """

    def make():
        all_sites: list[Sites] = []

        def run(*args):
            outs, fault = evaluate(jaxpr, args, categories)
            all_sites.append(fault.sites)
            return [*outs, *fault.leaves] if len(fault.sites) else outs

        program = stage(run, jaxpr.in_avals, debug_info=jaxpr.debug_info, parent=None)
        if not len(all_sites[0]) and program.effects == jaxpr.effects:
            program = jaxpr
        return program, all_sites[0]

    key = (categories, faults.version, error_checks.version)
    return derive_from_jaxpr(jaxpr, "faulty", key, make)


def evaluate(jaxpr: Jaxpr, args: Sequence[Any], categories: Categories) -> tuple[list[Any], Fault]:
    """Apply a jaxpr under the current trace, with the checks of these categories."""
    all_faults: list[Fault] = []

    def step(eqn: Eqn, values: list[Any]) -> list[Any]:
        outs, new = _apply(eqn, values, categories)
        all_faults.extend(new)
        return outs

    outs = interpret(jaxpr, args, step, constant=None)
    return outs, joined(all_faults) if all_faults else Fault(NO_SITES, np.int32(-1), [])


def _apply(eqn: Eqn, args: list[Any], categories: Categories) -> tuple[list[Any], list[Fault]]:
    prim = eqn.primitive
    rule = prim.rules.get(faults)
    if rule is not None:
        result = rule(categories, args, eqn)
        if not isinstance(result, tuple) or len(result) != 2:
            invalid_result(prim, faults, rule, f"returned {result!r}")
        return result
    if extended_body in prim.rules:
        return _of_positions(eqn, args, categories)
    raised: list[Fault] = []
    if expand in prim.rules:
        avals = [typeof(x) for x in args]
        outs, raised = called(expanded(prim, avals, eqn.params), args, categories)
        if error_checks not in prim.rules:  # the fallback's checks are those of its expansion
            return outs, raised
    else:
        out = prim.bind(*args, **eqn.params)
        outs = list(out) if prim.multiple_results else [out]
    checks = checks_of(prim, args, outs, eqn.params)
    where = eqn.source_info
    return outs, [*raised, *(Fault.of(c, where) for c in checks if c.category in categories)]


def _of_positions(
    eqn: Eqn, args: Sequence[Any], categories: Categories
) -> tuple[list[Any], list[Fault]]:
    """Results and faults of an operation over a mesh: those of the first position that failed."""
    sites = NO_SITES

    def change(body: Jaxpr) -> Jaxpr:
        nonlocal sites
        program, sites = faulty(body, categories)
        return program

    rule = eqn.primitive.rules[extended_body]
    outs, rows = rule(change, args, **eqn.params)
    if not len(sites):
        return list(outs), []
    which = argmax(ge(rows[0], np.int32(0)), 0, np.int32)
    code, *values = [dynamic_index_in_dim(x, which, 0, keepdims=False) for x in rows]
    return list(outs), [Fault(sites, code, values)]


def checks_of(
    prim: Primitive, args: Sequence[Any], outs: Sequence[Any], params: dict[str, Any]
) -> list[Check]:
    """The checks of an operation, given its operands and results."""
    rule = prim.find(error_checks)
    if rule is None:
        return []
    checks = rule(args, outs, **params)
    if not isinstance(checks, (list, tuple)) or not all(isinstance(c, Check) for c in checks):
        invalid_result(prim, error_checks, rule, f"returned {checks!r}")
    return list(checks)


def called(
    jaxpr: Jaxpr, args: Sequence[Any], categories: Categories, call: Callable[..., Any] = eval_jaxpr
) -> tuple[list[Any], list[Fault]]:
    """Results and faults of a sub-jaxpr.

    Args:
      call: applies a program to arguments.
    """
    program, sites = faulty(jaxpr, categories)
    return split_faults(call(program, args), sites)


def split_faults(outs: Sequence[Any], sites: Sites) -> tuple[list[Any], list[Fault]]:
    """Results and faults, from the results of a jaxpr that :func:`faulty` returned."""
    if not len(sites):
        return list(outs), []
    n = len(outs) - len(sites.avals)
    return list(outs[:n]), [Fault(sites, outs[n], outs[n + 1 :])]
