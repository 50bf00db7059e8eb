"""Evaluation traces: eager evaluation as a trace, and access to the current trace."""

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
    """Eager evaluation as a trace; it is the current trace outside all transformations.

    The core represents it by ``None``, but interpreters written for JAX bind primitives on their
    parent trace, which may be this one.
    """

    __slots__ = ()

    main = None
    requires_low = True
    live = True

    def stage_value(self, val: Any) -> Any:
        """Convert a value to an array."""
        return as_operand(val)

    full_raise = stage_value

    def is_valid(self) -> bool:
        """Return True: eager evaluation never ends."""
        return True

    def process_primitive(self, primitive: Any, tracers: Any, params: Any, /) -> Any:
        """Evaluate a primitive eagerly."""
        with set_trace(None):
            return primitive.bind(*tracers, **params)

    def __repr__(self) -> str:
        return "EvalTrace"


eval_trace: Final = EvalTrace()


def core_trace(trace: Any) -> Trace | None:
    """Return the core's trace: the argument, or ``None`` for eager evaluation."""
    return None if trace is eval_trace else trace


def public_trace(trace: Trace | None) -> Any:
    """Return the trace that code written for JAX sees for a trace of the core."""
    return eval_trace if trace is None else trace


class take_current_trace:
    """Context manager that returns the current trace and activates eager evaluation."""

    __slots__ = ("_saved",)

    def __enter__(self) -> Any:
        trace = current_trace()
        self._saved = set_trace(None)
        self._saved.__enter__()
        return public_trace(trace)

    def __exit__(self, *error: object) -> None:
        self._saved.__exit__(*error)


class set_current_trace:
    """Context manager that sets the current trace; ``None`` is eager evaluation.

    Args:
      trace: a trace of the library, or of a class derived from ``core.Trace``.
      check_leaks: raise an error if tracers of the trace are alive at the end.
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
            f"Leaked trace {type(trace).__name__}: {len(leaked)} of its tracers are still alive, "
            f"the first one of type {leaked[0].aval}. Return values from the function instead of "
            "storing them outside."
        )


class TraceTag:
    """Tag of the traces of one interpreter run; all instances compare equal.

    Interpreters compare tags by identity to distinguish their tracers from those of an outer run.
    """

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TraceTag)

    def __hash__(self) -> int:
        return hash(TraceTag)


class OpaqueTraceState:
    """Identity of the current trace, for comparisons; it does not keep the trace alive."""

    __slots__ = ("_trace", "_convention")
    __hash__: Any = None  # type: ignore[assignment]

    def __init__(self, trace: Trace | None, convention: str | None) -> None:
        # A live trace has exactly one weak reference, and a later trace has another.
        self._trace: weakref.ref[Trace] | None = None if trace is None else weakref.ref(trace)
        self._convention: str | None = convention

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, OpaqueTraceState):
            return NotImplemented
        return self._trace is other._trace


def get_opaque_trace_state(convention: str | None = None) -> OpaqueTraceState:
    """Return a value that compares equal if both were created under the same trace.

    Args:
      convention: ignored.
    """
    return OpaqueTraceState(current_trace(), convention)


def find_top_trace(_: Iterable[Any] | None = None) -> Any:
    """Return the current trace; the arguments, which determined it in the past, are ignored."""
    return public_trace(current_trace())


def trace_state_clean() -> bool:
    """Return True if no transformation is active in this thread."""
    return current_trace() is None


def _running(cls: type) -> bool:
    trace = current_trace()
    while trace is not None:
        if isinstance(trace, cls):
            return True
        trace = trace.parent
    return False


def unsafe_am_i_under_a_jit_DO_NOT_USE() -> bool:
    """Return True while a jaxpr is traced: by ``jit``, ``make_jaxpr``, or for a loop or branch.

    A function that depends on this behaves differently when compiled.
    """
    return _running(StagingTrace)


def unsafe_am_i_under_a_vmap_DO_NOT_USE() -> bool:
    """Return True if the function runs under ``vmap``."""
    return _running(BatchTrace)


def unsafe_get_axis_names_DO_NOT_USE() -> list[Any]:
    """Return the names of the axes bound by enclosing transformations, outermost first."""
    return list(axes_in_scope())


def nonempty_axis_env_DO_NOT_USE() -> bool:
    """Return True if an enclosing transformation binds a named axis."""
    return bool(axes_in_scope())
