"""Loop-invariant code motion: equations of a loop's body that are computed once, before the loop.

The jaxpr of a loop is as traced. Its lowering splits the body: :func:`hoisted` emits the part that
depends on constants alone. It returns the rest, whose first arguments are the results of that part.

Only pure equations that always end without an error are hoisted, because the loop may run zero
times. A value is passed into the loop if it is small, or not larger than the constants that the
loop no longer reads. Broadcasts and arithmetic of scalars are cheap, and are repeated inside.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from .._base.identity import is_own
from .._ir.avals import ShapedArray
from .._ir.byte_sizes import nbytes
from .._ir.effects import on_references
from .._ir.jaxpr import Eqn, Jaxpr, Literal, Var, jaxprs_in
from .._ir.symbolic_dims import is_static
from .liveness import live_eqns
from .module import LoweringContext, lower_body

SMALL_BYTES: Final = 1 << 16
"""Values up to this size may be hoisted even if the loop still reads what they depend on."""

# The sub-jaxprs of loops, each with the parameter that counts its constants, in operand order.
_LOOPS: Final[dict[str, tuple[tuple[str, str], ...]]] = {
    "scan": (("jaxpr", "num_consts"),),
    "while": (("cond_jaxpr", "cond_nconsts"), ("body_jaxpr", "body_nconsts")),
}
_CALLS: Final = ("jit", "remat2")
_STAY: Final = frozenset((
    "while",  # it may not end
    "pure_callback", "call_exported",  # they may raise an error
    "rng_uniform",
    "optimization_barrier", "stage", "dce_sink", "create_token", "after_all",
    "device_put", "sharding_constraint", "layout_constraint",
))  # fmt: skip


class Split(NamedTuple):
    """A jaxpr in two parts.

    Attributes:
      before: from the invariant arguments to the hoisted values.
      rest: the jaxpr with the hoisted values as additional first arguments.
    """

    before: Jaxpr
    rest: Jaxpr


def hoisted(
    ctx: LoweringContext, jaxpr: Jaxpr, consts: Sequence[Any]
) -> tuple[Jaxpr, Sequence[Any]]:
    """Emit the loop-invariant part of a body at the current insertion point.

    Args:
      consts: values of the first arguments of the jaxpr, the same in all steps.

    Returns:
      The rest of the body, and its constants.
    """
    parts = split(jaxpr, (True,) * len(consts) + (False,) * (len(jaxpr.invars) - len(consts)))
    if parts is None:
        return jaxpr, consts
    return parts.rest, [*lower_body(ctx, parts.before, consts), *consts]


def split(jaxpr: Jaxpr, invariant: tuple[bool, ...]) -> Split | None:
    """The parts of a jaxpr with these invariant arguments; ``None`` if nothing is hoisted."""
    key = ("loop invariants", invariant)
    if key not in jaxpr.cache:
        jaxpr.cache[key] = _split(jaxpr, invariant)
    parts: Split | None = jaxpr.cache[key]
    return parts


def _split(jaxpr: Jaxpr, mask: tuple[bool, ...]) -> Split | None:
    if on_references(jaxpr.effects):
        return None
    arguments = [v for v, m in zip(jaxpr.invars, mask) if m]
    consts = dict(zip(jaxpr.constvars, jaxpr.consts))
    invariant = {*arguments, *consts}
    eqns, movable = [], []
    for whole in live_eqns(jaxpr):
        for eqn in _without_invariants(whole, invariant, consts):
            invariant.update(consts)
            eqns.append(eqn)
            if _all_in(eqn.invars, invariant) and _can_move(eqn):
                movable.append(eqn)
                invariant.update(eqn.outvars)
    passed = _passed(movable, _reads_of_rest(jaxpr, eqns, movable), [*arguments, *consts])
    if not passed:
        return None
    before, read_before = _needed(movable, passed, ())
    rest, read_inside = _needed(eqns, jaxpr.outvars, passed)
    return Split(
        _with_consts(jaxpr, consts, read_before, arguments, passed, before),
        _with_consts(jaxpr, consts, read_inside, [*passed, *jaxpr.invars], jaxpr.outvars, rest),
    )


def _all_in(atoms: Sequence[Any], variables: set[Var]) -> bool:
    return all(type(v) is Literal or v in variables for v in atoms)


def _with_consts(
    jaxpr: Jaxpr, consts: dict[Var, Any], read: set[Any], invars: Any, outvars: Any, eqns: list[Eqn]
) -> Jaxpr:
    """A part of a jaxpr, with the constants that it reads."""
    pairs = [(v, c) for v, c in consts.items() if v in read]
    return Jaxpr(
        [v for v, _ in pairs], [c for _, c in pairs], invars, outvars, eqns,
        debug_info=jaxpr.debug_info,
    )  # fmt: skip


def _needed(
    eqns: Sequence[Eqn], outvars: Sequence[Any], available: Sequence[Var]
) -> tuple[list[Eqn], set[Any]]:
    """The equations that compute ``outvars`` and effects from ``available``, and what they read."""
    known = set(available)
    read = {v for v in outvars if type(v) is Var}
    needed = []
    for eqn in reversed(eqns):
        if eqn.effects or any(v in read and v not in known for v in eqn.outvars):
            needed.append(eqn)
            read.update(v for v in eqn.invars if type(v) is Var)
    needed.reverse()
    return needed, read


# The equations that can move


def _can_move(eqn: Eqn) -> bool:
    """Return True if an equation is pure and total, and its operands and results are arrays."""
    return _is_total(eqn) and all(
        isinstance(v.aval, ShapedArray) and is_static(v.aval.shape)
        for v in (*eqn.invars, *eqn.outvars)
    )


def _is_total(eqn: Eqn) -> bool:
    prim = eqn.primitive
    return (
        not eqn.effects
        and prim.name not in _STAY
        and is_own(prim.home)
        and not _is_recomputation(eqn)
        and all(_is_total(e) for jaxpr in jaxprs_in(eqn.params) for e in live_eqns(jaxpr))
    )


def _is_recomputation(eqn: Eqn) -> bool:
    params = eqn.params
    return bool(params.get("differentiated") and params.get("prevent_cse"))


# Sub-jaxprs


def _without_invariants(eqn: Eqn, invariant: set[Var], consts: dict[Var, Any]) -> Iterator[Eqn]:
    """The equation of a loop or call, after the invariant part of its sub-jaxprs.

    ``consts`` gets the constants of that part.
    """
    name = eqn.primitive.name
    if not is_own(eqn.primitive.home) or _is_recomputation(eqn):
        yield eqn
    elif name in _LOOPS and not _all_in(eqn.invars, invariant):
        yield from _loop_without_invariants(eqn, consts)
    elif name in _CALLS and not _all_in(eqn.invars, invariant):
        jaxpr = eqn.params["jaxpr"]
        mask = tuple(type(v) is Literal or v in invariant for v in eqn.invars)
        parts = split(jaxpr, mask)
        if parts is None:
            yield eqn
            return
        scopes = (f"jit({eqn.params['name']})",) if name == "jit" else ()
        values, eqns = _inlined(
            parts.before, [v for v, m in zip(eqn.invars, mask) if m], eqn, scopes, consts
        )
        yield from eqns
        params = {**eqn.params, "jaxpr": parts.rest}
        yield eqn.replace(invars=[*values, *eqn.invars], params=params)
    else:
        yield eqn


def _loop_without_invariants(eqn: Eqn, consts: dict[Var, Any]) -> Iterator[Eqn]:
    operands, params, start = list(eqn.invars), dict(eqn.params), 0
    for jaxpr_name, count_name in _LOOPS[eqn.primitive.name]:
        jaxpr, n = params[jaxpr_name], params[count_name]
        parts = split(jaxpr, (True,) * n + (False,) * (len(jaxpr.invars) - n))
        if parts is not None:
            values, eqns = _inlined(parts.before, operands[start : start + n], eqn, (), consts)
            yield from eqns
            operands[start:start] = values
            n += len(values)
            params |= {jaxpr_name: parts.rest, count_name: n}
        start += n
    yield eqn if params == eqn.params else eqn.replace(invars=operands, params=params)


def _inlined(
    jaxpr: Jaxpr, operands: Sequence[Any], outer: Eqn, scopes: tuple[str, ...],
    consts: dict[Var, Any],
) -> tuple[list[Any], list[Eqn]]:  # fmt: skip
    """The results of a jaxpr and its equations, with new variables, in place of ``outer``."""
    env: dict[Any, Any] = dict(zip(jaxpr.invars, operands))
    known = {id(c): v for v, c in consts.items()}
    for var, const in zip(jaxpr.constvars, jaxpr.consts):
        env[var] = known.get(id(const)) or Var(var.aval)
        consts[env[var]] = const
    located = jaxpr.debug_info.filename is not None
    eqns = []
    for eqn in jaxpr.eqns:
        outvars = [Var(v.aval) for v in eqn.outvars]
        eqns.append(
            eqn.replace(
                invars=[v if type(v) is Literal else env[v] for v in eqn.invars],
                outvars=outvars,
                source_info=eqn.source if located else outer.source,
                ctx=(*outer.ctx, *scopes, *eqn.ctx),
            )
        )
        env.update(zip(eqn.outvars, outvars))
    return [env[v] for v in jaxpr.outvars], eqns


# The values that are passed into the loop


def _reads_of_rest(jaxpr: Jaxpr, eqns: Sequence[Eqn], movable: Sequence[Eqn]) -> set[Any]:
    """Variables that the results and the equations that cannot move read."""
    moved = set(map(id, movable))
    read = {v for v in jaxpr.outvars if type(v) is Var}
    for eqn in eqns:
        if id(eqn) not in moved:
            read.update(v for v in eqn.invars if type(v) is Var)
    return read


def _passed(movable: Sequence[Eqn], read: set[Any], consts: Sequence[Var]) -> list[Var]:
    """The values to compute before the loop.

    Args:
      read: the variables that the rest of the body reads.
    """
    sources: dict[Any, frozenset[Var]] = {c: frozenset((c,)) for c in consts}
    for eqn in movable:
        union = frozenset().union(*(sources[v] for v in eqn.invars if type(v) is Var))
        sources.update((v, union) for v in eqn.outvars)
    repeated: set[int] = set()
    while True:
        inside, passing = set(read), []
        for eqn in reversed(movable):
            values = [v for v in eqn.outvars if v in inside]
            if not values:
                continue
            if id(eqn) in repeated or _is_cheap(eqn, inside):
                inside.update(v for v in eqn.invars if type(v) is Var)
            else:
                passing.append((eqn, values))
        passing.reverse()
        free = {c: nbytes(c.aval) for c in consts if c not in inside and _is_array(c)}
        too_large = [
            id(eqn) for eqn, values in passing if not _fits(values, sources[values[0]], free)
        ]
        if not too_large:
            return [v for _, values in passing for v in values]
        repeated.update(too_large)


def _fits(values: Sequence[Var], sources: frozenset[Var], free: dict[Var, int]) -> bool:
    """Return True for small values, or ones that replace constants; their bytes are used up."""
    size = sum(nbytes(v.aval) for v in values)
    if size <= SMALL_BYTES:
        return True
    if size > sum(free.get(c, 0) for c in sources):
        return False
    for c in sources:
        used = min(size, free.get(c, 0))
        if used:
            free[c] -= used
            size -= used
    return True


def _is_array(variable: Var) -> bool:
    aval = variable.aval
    return isinstance(aval, ShapedArray) and is_static(aval.shape)


def _is_cheap(eqn: Eqn, inside: set[Any]) -> bool:
    """Return True if repeating an equation costs less than reading its result."""
    name = eqn.primitive.name
    if name in ("iota", "broadcast_in_dim"):
        return True
    if name in ("reshape", "squeeze"):
        return eqn.invars[0] in inside
    scalars = all(v.aval.size <= 1 for v in (*eqn.invars, *eqn.outvars))
    return scalars and not jaxprs_in(eqn.params)
