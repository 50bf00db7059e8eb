"""Copies of loops that overlap with other steps: reads start one step before, writes end later.

They are reads and writes of arrays outside of the core's memory, at positions that follow from the
number of the step. `emit_pipeline` makes such loops.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from primax_core.extend import Eqn, Jaxpr, Literal, evaluate_scalars, references

from .._access import former_get_p
from .._emission.elements import unwritten
from .._emission.usage import accesses_of
from . import types
from .copies import View, await_copy, copy_at_once, start_copy, view_of
from .emitter import Emitter
from .memory import Reference
from .registry import BACKEND, Context
from .values import Value

_MAX_STEPS: Final = 1 << 12
"""The most steps whose destinations are compared."""

ValuesAt = Callable[[Value], Sequence[Any]]
"""From the number of a step to the arguments of the loop's body, ``None`` for unknown ones."""


class Loop:
    """A loop whose copies overlap.

    Args:
      ctx: the context of the loop's equation.
      jaxpr: the body.
      length: the number of steps.
      arguments: the body's arguments in the first step, ``None`` for those that a step computes.
      values_at: the arguments in any step.
      counters: the arguments that grow by a constant, with it.
    """

    def __init__(
        self, ctx: Context, jaxpr: Jaxpr, length: int, arguments: Sequence[Any],
        values_at: ValuesAt, counters: Mapping[int, int],
    ):  # fmt: skip
        self.counters = counters
        self.arguments = arguments
        self.emitter = ctx.emitter
        self.length = length
        self.values_at = values_at
        self.copies: list[_Copy] = []
        self.unused: list[Eqn] = []
        refs = {
            v: i for i, (v, x) in enumerate(zip(jaxpr.invars, arguments))
            if isinstance(x, Reference) and x.space in ("any", "hbm")
        }  # fmt: skip
        if not refs or length < 2 or getattr(self.emitter.kernel, "aliases", ()):
            return
        self.unused = _unused_contents(jaxpr, refs)
        skipped = set(map(id, self.unused))
        accesses = [a for a in accesses_of(jaxpr, refs) if id(a.eqn) not in skipped]
        for i in refs.values():
            same = [a for a in accesses if arguments[a.ref] is arguments[i]]
            for a in (a for a in same if a.ref == i):
                if a.reads == a.writes or any(other.writes for other in same) != a.writes:
                    continue
                if a.eqn.primitive is references.get_p:
                    self._add(_Read, jaxpr, a.eqn, arguments)
                elif a.eqn.primitive is references.swap_p and len(same) == 1:
                    self._add(_Write, jaxpr, a.eqn, arguments)

    def _add(self, kind: Any, jaxpr: Jaxpr, eqn: Eqn, arguments: Sequence[Any]) -> None:
        """Add an access if the positions of all steps follow from their numbers."""
        at = next((k for k, q in enumerate(jaxpr.eqns) if q is eqn), None)
        if at is None:
            return
        n = 2 if kind is _Write else 1  # operands before the positions
        positions, used = _slice_of(jaxpr, list(eqn.invars[n:]), at)
        known = [x for x, u in zip(arguments, used) if u]
        if any(x is None or isinstance(x, Reference) for x in known):
            return
        aval = eqn.outvars[0].aval
        if not aval.shape:
            return
        ref = arguments[jaxpr.invars.index(eqn.invars[0])]
        copy = kind(self, ref, eqn, positions, used, tuple(aval.shape))
        if kind is _Read and not any(used[i] for i in self.counters):
            copy = _Constant(self, ref, eqn, positions, used, tuple(aval.shape))
        if kind is _Read or copy.is_apart():
            self.copies.append(copy)

    def before(self) -> None:
        """Emit what comes before the loop."""
        for copy in self.copies:
            copy.allocate()
            copy.before()

    def step(self, number: Value) -> dict[int, Callable[..., Any]]:
        """Emit the start of a step; returns what replaces equations of the body, by identity."""
        for copy in self.copies:
            copy.start_of_step(number)
        replaced: dict[int, Callable[..., Any]] = {}
        for eqn in self.unused:
            replaced[id(eqn)] = _filled(self.emitter, eqn)
        for copy in self.copies:
            replaced[id(copy.eqn)] = copy.rule(number)
        return replaced

    def after(self) -> None:
        """Emit what comes after the loop."""
        for copy in self.copies:
            copy.after()


def _slice_of(jaxpr: Jaxpr, results: list[Any], at: int) -> tuple[Jaxpr, list[bool]]:
    """The equations before ``at`` that results depend on, and the mask of arguments they use."""
    needed = {v for v in results if type(v) is not Literal}
    eqns = []
    for eqn in reversed(jaxpr.eqns[:at]):
        if needed.intersection(eqn.outvars):
            eqns.insert(0, eqn)
            needed |= {v for v in eqn.invars if type(v) is not Literal}
    used = [v in needed for v in jaxpr.invars]
    invars = [v for v, u in zip(jaxpr.invars, used) if u]
    return Jaxpr(jaxpr.constvars, jaxpr.consts, invars, results, eqns), used


def _filled(e: Emitter, eqn: Eqn) -> Callable[..., Any]:
    aval = eqn.outvars[0].aval
    return lambda *_: e.constant(unwritten(aval.dtype), aval.dtype, aval.shape)


def _unused_contents(jaxpr: Jaxpr, refs: Any) -> list[Eqn]:
    """Reads of former contents into new memory that is overwritten before it is read."""
    unused = []
    for eqn in jaxpr.eqns:
        if eqn.primitive is not former_get_p or eqn.invars[0] not in refs:
            continue
        users = [q for q in jaxpr.eqns if any(v is eqn.outvars[0] for v in q.invars)]
        if len(users) != 1 or users[0].primitive is not references.new_ref_p:
            continue
        local = users[0].outvars[0]
        accesses = accesses_of(jaxpr, {local: 0})
        if accesses and accesses[0].writes and not accesses[0].reads:
            if accesses[0].whole and accesses[0].certain and not accesses[0].looped:
                unused.append(eqn)
    return unused


class _Copy:
    """An access of a loop's body with two buffers.

    Attributes:
      positions: jaxpr from the arguments of the body that it uses to the positions.
    """

    def __init__(
        self, loop: Loop, ref: Reference, eqn: Eqn, positions: Jaxpr, used: Sequence[bool],
        shape: tuple[int, ...],
    ):  # fmt: skip
        self.loop, self.ref, self.eqn = loop, ref, eqn
        self.positions, self.used, self.shape = positions, used, shape
        self.context = Context(BACKEND, loop.emitter, eqn, set())

    def allocate(self) -> None:
        """Reserve the buffers and their semaphores."""
        e = self.loop.emitter
        name, _ = e.memory(self.ref.element, (2, *self.shape), "vmem")
        self.buffers = Reference(name, self.ref.dtype, (2, *self.shape))
        name, _ = e.memory(types.DMA_SEMAPHORE, (2,), "semaphore_mem")
        self.semaphores = Reference(name, np.int32, (2,), "semaphore_mem")

    def far(self, number: Value) -> View:
        """The part of the array at a step."""
        arguments = [x for x, u in zip(self.loop.values_at(number), self.used) if u]
        operands = self.context.lower(self.positions, arguments)
        pieces, _ = self.ref.pieces(self.context, self.eqn.params["index"], operands)
        return view_of(self.context, self.ref, pieces)

    def near(self, number: Value) -> tuple[View, View]:
        """The buffer of a step, and its semaphore."""
        slot = self.slot(number)
        index = (references.INTEGER, *map(_whole, self.shape))
        pieces, _ = self.buffers.pieces(self.context, index, [slot])
        buffer = view_of(self.context, self.buffers, pieces)
        pieces, _ = self.semaphores.pieces(self.context, (references.INTEGER,), [slot])
        return buffer, view_of(self.context, self.semaphores, pieces)

    def slot(self, number: Value) -> Value:
        """The number of the buffer of a step."""
        e = self.loop.emitter
        if number.known is not None:
            return e.index(number.known % 2)
        return e.binary("arith.remsi", number, e.index(2), (0, 1))

    def when(self, condition: Value, then: Callable[[], None]) -> None:
        """Emit a part that runs if a condition holds."""
        from .control_rules import branch

        def body() -> list[Value]:
            then()
            return []

        branch(self.loop.emitter, condition, body, list)


class _Read(_Copy):
    """A read, which is started one step before."""

    def _start(self, number: Value) -> None:
        buffer, semaphore = self.near(number)
        start_copy(self.loop.emitter, self.far(number), buffer, semaphore)

    def before(self) -> None:
        self._start(self.loop.emitter.index(0))

    def start_of_step(self, number: Value) -> None:
        e, last = self.loop.emitter, self.loop.length - 1
        following = e.add(number, e.index(1))
        condition = e.compare("le", following, e.index(last))
        self.when(condition, lambda: self._start(following.having((1, last))))

    def rule(self, number: Value) -> Callable[..., Any]:
        def read(*_: Any) -> Value:
            buffer, semaphore = self.near(number)
            await_copy(self.loop.emitter, self.far(number), buffer, semaphore)
            index = (references.INTEGER, *map(_whole, self.shape))
            return self.buffers.read(self.context, index, [self.slot(number)])

        return read

    def after(self) -> None:
        pass


class _Constant(_Copy):
    """A read of the same part in each step, which is copied once before the loop."""

    def allocate(self) -> None:
        name, _ = self.loop.emitter.memory(self.ref.element, self.shape, "vmem")
        self.buffers = Reference(name, self.ref.dtype, self.shape)

    def before(self) -> None:
        e = self.loop.emitter
        copy_at_once(e, self.far(e.index(0)), View(self.buffers.name, self.buffers.type))

    def start_of_step(self, number: Value) -> None:
        pass

    def rule(self, number: Value) -> Callable[..., Any]:
        return lambda *_: self.buffers.read(self.context, None, ())

    def after(self) -> None:
        pass


class _Write(_Copy):
    """A write, which is awaited when its buffer is needed again."""

    def is_apart(self) -> bool:
        """Return True if the destinations of neighbouring steps are known to be apart."""
        if self.loop.length > _MAX_STEPS:
            return False
        previous: list[tuple[int, int]] | None = None
        for number in range(self.loop.length):
            part = self._destination(number)
            if part is None:
                return False
            if previous is not None and not any(
                abs(start - before) >= span for (start, span), (before, _) in zip(part, previous)
            ):
                return False
            previous = part
        return True

    def _destination(self, number: int) -> list[tuple[int, int]] | None:
        """The first position and the number of positions along each axis, in a step."""
        known = []
        for i in (i for i, u in enumerate(self.used) if u):
            x = self.loop.arguments[i].known
            if x is None:
                return None
            step = self.loop.counters.get(i, 0)
            known.append(np.asarray(x + step * number, self.loop.arguments[i].dtype)[()])
        operands = iter(evaluate_scalars(self.positions, known))
        part = []
        for entry, n in zip(self.eqn.params["index"] or (), self.ref.block_shape):
            if isinstance(entry, references.StaticSlice):
                part.append((entry.start, (entry.size - 1) * entry.stride + 1))
                continue
            span = 1 if isinstance(entry, str) else (entry.size - 1) * entry.stride + 1
            part.append((min(max(int(next(operands)), 0), n - span), span))
        return part

    def before(self) -> None:
        pass

    def start_of_step(self, number: Value) -> None:
        pass

    def rule(self, number: Value) -> Callable[..., Any]:
        def write(_: Any, value: Value, *__: Any) -> Value:
            e = self.loop.emitter
            buffer, semaphore = self.near(number)
            far = self.far(number)
            again = e.compare("ge", number, e.index(2))
            self.when(again, lambda: await_copy(e, buffer, far, semaphore))
            index = (references.INTEGER, *map(_whole, self.shape))
            self.buffers.write(self.context, value, index, [self.slot(number)])
            start_copy(e, buffer, far, semaphore)
            return value

        return write

    def after(self) -> None:
        e = self.loop.emitter
        for number in (self.loop.length - 2, self.loop.length - 1):
            buffer, semaphore = self.near(e.index(number))
            await_copy(e, buffer, self.far(e.index(number)), semaphore)


def _whole(n: int) -> Any:
    return references.StaticSlice(0, n, 1)
