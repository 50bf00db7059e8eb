"""Checks that rules are pure functions of types: no values, no side effects, deterministic."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from ..._api.forward import jvp
from ..._api.tracing import make_jaxpr
from ..._api.vjp import vjp
from ..._api.vmap import vmap
from ..._base import errors
from ..._ir import rules as kinds
from ..._trace.core import typeof
from ..._trace.staging import stage
from ..._transform.batching import Axis
from ..._transform.zeros import Zero
from ..calls import Call, Failure
from ..gradients import random_tangent

_READS = (errors.ConcretizationTypeError, errors.TracerArrayConversionError,
          errors.TracerIntegerConversionError)  # fmt: skip


def check_purity(get: Callable[..., Call]) -> None:
    """Every transformation gives the same jaxpr twice, from types only."""
    call = get()
    for how, trace in _traces(call):
        try:
            first = str(trace())
        except NotImplementedError:
            continue
        except _READS as e:
            raise Failure(f"the rule for {how} reads values: {str(e).splitlines()[0]}") from e
        call.prim.forget()
        second = str(trace())
        if first != second:
            raise Failure(f"the rule for {how} gave two different jaxprs:\n{first}\n{second}")


def _traces(call: Call) -> Iterator[tuple[str, Callable]]:
    """Traces of the call under each transformation."""
    args, indices = call.args, call.differentiable
    yield "evaluation", lambda: make_jaxpr(call.raw)(*args)
    if indices:
        some = [args[i] for i in indices]
        rng = np.random.default_rng(0)
        tangents = [random_tangent(x, rng) for x in some]
        fun = call.of(indices)
        if "jvp" not in call.sample.without:
            yield "jvp", lambda: make_jaxpr(lambda ps, ts: jvp(fun, ps, ts))(some, tangents)
        if "transpose" not in call.sample.without:

            def pulled(*xs):
                outs, pullback = vjp(fun, *xs)
                return pullback([random_tangent(o, rng) * 0 + 1 for o in outs])

            yield "reverse mode", lambda: make_jaxpr(pulled)(*some)
    if call.drawn and "batching" not in call.sample.without:
        axes = tuple(0 if i in call.drawn else None for i in range(len(args)))
        batch = [np.stack([np.asarray(a)] * 2) if i in call.drawn else a
                 for i, a in enumerate(args)]  # fmt: skip
        yield "vmap", lambda: make_jaxpr(vmap(call.raw, axes))(*batch)


def check_mutation(get: Callable[..., Call]) -> None:
    """Arguments, parameters, and the lists passed to rules are not changed."""
    call = get()
    args = [a.copy() if isinstance(a, np.ndarray) else a for a in call.args]
    copies = [np.array(a) for a in args]
    params = dict(call.params)
    before = repr(params)
    call.raw(*args)
    for i, (a, b) in enumerate(zip(args, copies)):
        if np.asarray(a).tobytes() != b.tobytes():
            raise Failure(f"operand {i} was changed by the operation")
    if call.sample.call is not None:
        return
    for what, now, then in _lists_passed(call, [typeof(a) for a in args], params):
        if len(now) != len(then) or any(a is not b for a, b in zip(now, then)):
            raise Failure(f"{what} were changed by the rule")
    if repr(params) != before:
        raise Failure(f"the parameters were changed: {before} became {params!r}")


def _lists_passed(call: Call, avals: Sequence, params: dict) -> Iterator[tuple[str, list, list]]:
    """The lists passed to the rules, after the call, with their previous contents."""
    passed: list[tuple[str, list, list]] = []

    def pass_list(what: str, values: list) -> list:
        passed.append((what, values, list(values)))
        return values

    forward, batching = call.prim.find(kinds.jvp), call.prim.find(kinds.batch)
    if forward is not None and call.differentiable:
        tangents = [a.tangent_aval() for a in avals]

        def run_forward(*xs):
            primals, dots = xs[: len(avals)], xs[len(avals) :]
            dots = [t if i in call.differentiable else Zero(t.aval) for i, t in enumerate(dots)]
            forward(
                pass_list("the primals of the jvp rule", list(primals)),
                pass_list("the tangents of the jvp rule", dots),
                **params,
            )
            return []

        stage(run_forward, [*avals, *tangents])
    if batching is not None and call.drawn and "batching" not in call.sample.without:

        def run_batching(*xs):
            dims: list = [0 if i in call.drawn else None for i in range(len(xs))]
            batching(
                Axis(2),
                pass_list("the operands of the batching rule", list(xs)),
                pass_list("the axes of the batching rule", dims),
                **params,
            )
            return []

        mapped = [
            a.update(shape=(2, *a.shape)) if i in call.drawn else a for i, a in enumerate(avals)
        ]
        stage(run_batching, mapped)
    yield from passed
