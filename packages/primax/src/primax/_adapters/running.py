"""Traces that run: eager evaluation as a trace, the current trace, and which one it is."""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import Any, Final

from primax_core.extend import (
    BatchTrace,
    StagingTrace,
    Trace,
    Tracer,
    as_operand,
    axes_in_scope,
    current_trace,
    set_trace,
)


class EvalTrace:
    """Eager evaluation, as the trace that is current when no transformation is.

    The core has no object for it (its current trace is ``None`` then), but interpreters written for
    JAX bind primitives on their parent trace, which may be this one.
    """

    __slots__ = ()

    main = None
    requires_low = True
    live = True

    def stage_value(self, val: Any) -> Any:
        """The value as an array."""
        return as_operand(val)

    full_raise = stage_value

    def is_valid(self) -> bool:
        """Eager evaluation never ends."""
        return True

    def process_primitive(self, primitive: Any, tracers: Any, params: Any, /) -> Any:
        """Evaluate now."""
        with set_trace(None):
            return primitive.bind(*tracers, **params)

    def __repr__(self) -> str:
        return "EvalTrace"


eval_trace: Final = EvalTrace()


def core_trace(trace: Any) -> Trace | None:
    """What the core calls a trace: itself, or ``None`` for eager evaluation."""
    return None if trace is eval_trace else trace


def shown_trace(trace: Trace | None) -> Any:
    """What code written for JAX sees of a trace of the core."""
    return eval_trace if trace is None else trace


class take_current_trace:
    """Context manager that gives the current trace and leaves eager evaluation in its place."""

    __slots__ = ("_saved",)

    def __enter__(self) -> Any:
        trace = current_trace()
        self._saved = set_trace(None)
        self._saved.__enter__()
        return shown_trace(trace)

    def __exit__(self, *error: object) -> None:
        self._saved.__exit__(*error)


class set_current_trace:
    """Context manager in which a trace is the current one; ``None`` stands for eager evaluation.

    Args:
      trace: a trace, the library's own or one of a class derived from ``core.Trace``.
      check_leaks: raise when tracers of the trace are alive at the end.
    """

    __slots__ = ("trace", "check_leaks", "_saved")

    def __init__(self, trace: Any, check_leaks: bool = False) -> None:
        self.trace: Any = trace
        self.check_leaks: bool = check_leaks

    def __enter__(self) -> None:
        trace = core_trace(self.trace)
        entered = getattr(trace, "entered", None)
        if entered is not None:
            entered(current_trace())
        self._saved = set_trace(trace)
        self._saved.__enter__()

    def __exit__(self, *error: object) -> None:
        self._saved.__exit__(*error)
        if self.check_leaks and error[0] is None:
            _refuse_leaks(self.trace)


def _refuse_leaks(trace: Any) -> None:
    import gc

    gc.collect()
    leaked = [t for t in gc.get_referrers(trace) if isinstance(t, Tracer)]
    if leaked:
        raise RuntimeError(
            f"Leaked trace {type(trace).__name__}: {len(leaked)} of its tracers are still held, "
            f"the first one of type {leaked[0].aval}. Return values from the function instead of "
            "storing them outside."
        )


class TraceTag:
    """Marks the traces of one run of an interpreter; each instance equals itself and all others.

    Interpreters compare tags by identity to tell their tracers from those of an outer run.
    """

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TraceTag)

    def __hash__(self) -> int:
        return hash(TraceTag)


class OpaqueTraceState:
    """What trace is current, for comparisons only; the trace is not kept alive."""

    __slots__ = ("_trace", "_convention")
    __hash__: Any = None  # type: ignore[assignment]

    def __init__(self, trace: Trace | None, convention: str | None) -> None:
        # One live trace has one weak reference, and a later trace gets another one.
        self._trace: weakref.ref[Trace] | None = None if trace is None else weakref.ref(trace)
        self._convention: str | None = convention

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, OpaqueTraceState):
            return NotImplemented
        return self._trace is other._trace


def get_opaque_trace_state(convention: str | None = None) -> OpaqueTraceState:
    """A value that equals another one exactly where both were made under the same trace.

    Args:
      convention: who asks; it has no influence.
    """
    return OpaqueTraceState(current_trace(), convention)


def find_top_trace(_: Iterable[Any] | None = None) -> Any:
    """The current trace; the values, by which it was once found, are not looked at."""
    return shown_trace(current_trace())


def trace_state_clean() -> bool:
    """Whether no transformation is running in this thread."""
    return current_trace() is None


def _running(cls: type) -> bool:
    trace = current_trace()
    while trace is not None:
        if isinstance(trace, cls):
            return True
        trace = trace.parent
    return False


def unsafe_am_i_under_a_jit_DO_NOT_USE() -> bool:
    """Whether a program is being written down: by ``jit``, or for a loop, a branch, ``make_jaxpr``.

    A function that depends on it does something else when it is compiled.
    """
    return _running(StagingTrace)


def unsafe_am_i_under_a_vmap_DO_NOT_USE() -> bool:
    """Whether the function runs for the examples of a batch."""
    return _running(BatchTrace)


def unsafe_get_axis_names_DO_NOT_USE() -> list[Any]:
    """The names of the axes that enclosing transformations bind, outermost first."""
    return list(axes_in_scope())


def nonempty_axis_env_DO_NOT_USE() -> bool:
    """Whether an enclosing transformation binds a named axis."""
    return bool(axes_in_scope())
