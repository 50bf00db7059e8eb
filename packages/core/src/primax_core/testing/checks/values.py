"""Checks of results: types, compiled against eager, and errors for bad input."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from ..._api.jit import jit
from ..._api.tracing import make_jaxpr
from ..._ir.avals import ShapedArray
from ..._ir.rules import abstract
from ..._ir.samples import Operand
from ..._trace.core import typeof
from ..calls import Call, Failure, NotApplicable
from ..tolerance import mismatches


def check_types(get: Callable[..., Call]) -> None:
    """The results have the avals of the abstract rule, which reads no values."""
    call = get()
    outs = call.raw(*call.args)
    for i, out in enumerate(outs):
        value = np.asarray(out)
        aval = typeof(out)
        if value.shape != aval.shape or value.dtype != aval.dtype:
            raise Failure(f"result {i} has aval {aval}, but its values are "
                          f"{value.dtype.name}{list(value.shape)}")  # fmt: skip
    if call.sample.call is not None:
        return
    rule = call.prim.require(abstract)
    declared = rule(*[typeof(a) for a in call.args], **call.params)
    declared = list(declared) if call.prim.multiple_results else [declared]
    for a in declared:
        if not isinstance(a, ShapedArray):
            raise Failure(f"the abstract rule returned {a!r}, which is not an aval")
    if [typeof(o) for o in outs] != declared:
        raise Failure(f"the abstract rule returns {declared}, the results have types "
                      f"{[typeof(o) for o in outs]}")  # fmt: skip


def check_weak_type(get: Callable[..., Call]) -> None:
    """A result has a weak type only if every operand has one."""
    call = get()
    if call.params.get("weak_type"):
        raise NotApplicable("a parameter sets the weak type")
    if all(typeof(a).weak_type for a in call.args):
        raise NotApplicable("all operands have weak types")
    strong = [i for i, a in enumerate(call.args) if not typeof(a).weak_type]
    for i, out in enumerate(call.raw(*call.args)):
        if typeof(out).weak_type:
            raise Failure(f"result {i} is weakly typed, though operands {strong} are not")


def check_compiled(get: Callable[..., Call]) -> None:
    """A compiled call equals an eager one, alone and in a larger function."""
    call = get()
    expected = call.fun(*call.args)
    compiled = jit(call.fun)(*call.args)
    for i, (a, b) in enumerate(zip(compiled, expected)):
        if typeof(a) != typeof(b):
            raise Failure(f"result {i} is {typeof(a)} compiled and {typeof(b)} eagerly")
    text = mismatches(compiled, expected, call.sample.tolerance)
    if text:
        raise Failure(f"compiled against eager: {text}")
    twice = jit(lambda *args: [call.fun(*args), call.fun(*args)])(*call.args)
    text = mismatches(twice[1], expected, call.sample.tolerance)
    if text:
        raise Failure(f"in a larger function against eager: {text}")


_NAMED = (TypeError, ValueError, OverflowError, NotImplementedError, IndexError)


def check_bad_input(get: Callable[..., Call]) -> None:
    """A wrong call raises an error with a message, eagerly and under a trace."""
    call = get()
    if call.sample.raises is not None:
        for how, run in (("eagerly", call.raw), ("while tracing", make_jaxpr(call.raw))):
            _must_raise(call.sample.raises, how, lambda run=run: run(*call.args))
        return
    if call.sample.call is not None:
        raise NotApplicable("the sample calls a function, not the primitive")
    args, prim = list(call.args), call.prim
    drawn = [i for i, a in enumerate(call.sample.operands) if isinstance(a, Operand)]
    if drawn:
        wrong = [*args[: drawn[0]], object(), *args[drawn[0] + 1 :]]
        _must_raise(
            TypeError, "with an object as operand", lambda: prim.bind(*wrong, **call.params)
        )
    for name in list(call.params)[:1]:
        _must_raise(
            _NAMED,
            f"with {name}=[], which cannot be hashed",
            partial(prim.bind, *args, **{**call.params, name: []}),
        )


def _must_raise(kind, how: str, run: Callable) -> None:
    try:
        run()
    except kind as e:
        if not str(e).strip():
            raise Failure(f"{type(e).__name__} {how} has no message") from e
        return
    except Exception as e:
        raise Failure(f"{type(e).__name__} {how}, where {_shown(kind)} is expected: {e}") from e
    raise Failure(f"no error {how}, where {_shown(kind)} is expected")


def _shown(kind) -> str:
    kinds = kind if isinstance(kind, tuple) else (kind,)
    return " or ".join(k.__name__ for k in kinds)
