"""``explain``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from primax_core.extend import Eqn
from primax_core.extend.runtime import CompiledCall, api_boundary, compile_call
from primax_core.extend.traces import check_callable, current_trace

from . import cost_table as _cost_table  # noqa: F401  (the fallback of the kind)
from .collectives import Program, Written, collectives_of, written
from .costs import equations, tally
from .described import described_in
from .drawing import drawn
from .hlo_text import Module, parsed
from .kernels import kernels_of
from .memory import peak_of
from .phases import COMPILE, Watch
from .places import Places
from .report import CompiledMemory, Report

# Beyond this, compiling once more for the lines of kernels would take too long.
_PATIENCE_SECONDS = 20.0


@api_boundary
def explain(fun: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Report:
    """The operations of a function for given arguments, their cost, and the results of compilation.

    The function is traced and compiled as a call would be, and not run. The report tells

    - how large its program is, by primitive;
    - the name, the blocks and the line of each kernel that it calls;
    - operations on floats, evaluations of special functions and memory traffic, by line of source;
    - how much memory it needs, and where the most;
    - what the compiled program runs (fusions, other kernels), and from which lines;
    - on several devices, what they send to each other: each collective, also those that XLA's
      partitioner added, with its bytes, its mesh axes and the line it comes from;
    - how long tracing, lowering, and compiling or loading took, and which of them happened;
    - for which signatures it was traced before, and what made each of them new.

    Args:
      fun: a function; a jitted one is explained with its options and its history.
      args, kwargs: as for a call; arrays may be ``ShapeDtypeStruct``.

    Counts follow from types: they are exact for contractions, reductions and elementwise
    operations, and marked as estimates elsewhere. Loops count as often as they run; those whose
    number of steps depends on values count once, and are marked.

    Raises:
      TypeError: as a call would; also inside another transformation.

    >>> import numpy as np
    >>> from primax_core import lax
    >>> report = explain(lambda x, y: lax.dot(x, y), np.ones((2, 3)), np.ones((3, 4)))
    >>> int(report.total.flops)
    48
    """
    _check(fun)
    with Watch() as watch:
        call = compile_call(fun, args, kwargs)
    return _report(call, watch)


def _report(call: CompiledCall, watch: Watch) -> Report:
    places = Places()
    module, requested, notes = _module(call, watch, places)
    program = Program(module, places, call.num_partitions, call.meshes, requested)
    info = call.jaxpr.debug_info
    return Report(
        name=call.name,
        place=f"{info.filename}:{info.line}" if info.filename else "",
        platform=call.platform,
        jaxpr=call.jaxpr,
        signatures=call.signatures,
        equations=equations(call.jaxpr),
        tally=tally(call.jaxpr, places),
        xla_cost=_xla_cost(call.executable),
        peak=peak_of(call.jaxpr, places),
        memory=_memory(call.executable),
        kernels=tuple(kernels_of(module, places)),
        num_devices=call.num_partitions,
        collectives=tuple(collectives_of(program)),
        phases=watch.phases(),
        notes=tuple(notes),
        drawing=drawn(call.jaxpr, places),
        described=described_in(call.jaxpr, places),
    )


def _check(fun: Any) -> None:
    check_callable(fun)
    if current_trace() is not None:
        raise TypeError(
            "explain compiles a function, so it cannot be used inside a function that is being "
            "transformed: call it outside, with example arguments"
        )


def _xla_cost(executable: Any) -> dict[str, float]:
    try:
        analysis: Any = executable.cost_analysis()
    except Exception:  # not every plug-in has it
        return {}
    if isinstance(analysis, list):
        analysis = analysis[0] if analysis else {}
    return {k: analysis[k] for k in ("flops", "transcendentals", "bytes accessed") if k in analysis}


def _memory(executable: Any) -> CompiledMemory:
    try:
        stats = executable.get_compiled_memory_stats()
    except Exception:  # not every plug-in has it
        return CompiledMemory(*[None] * 6)

    def figure(name: str) -> int | None:
        value = getattr(stats, f"{name}_in_bytes", None)
        return value if isinstance(value, int) else None

    return CompiledMemory(
        figure("argument_size"), figure("output_size"), figure("temp_size"),
        figure("alias_size"), figure("generated_code_size") or None, figure("peak_memory") or None,
    )  # fmt: skip


def _module(
    call: CompiledCall, watch: Watch, places: Places
) -> tuple[Module, list[Written], list[str]]:
    """The executable's module, its equations' collectives, and notes on what was not found.

    The lines of kernels are found by compiling the jaxpr once more with the lines of its equations
    in the names of operations.
    """

    requested: list[Written] = []

    def mark(eqn: Eqn) -> str:
        line = places.line(eqn.source_info)
        collective = written(eqn, line)
        if collective is not None:
            requested.append(collective)
        return f"#{places.number(line)}"

    took = watch.durations.get(COMPILE, 0.0)
    notes = []
    executable = call.executable
    if took > _PATIENCE_SECONDS:
        notes.append(
            f"compiling took {took:.0f} s, so it was not done again to find the lines of kernels"
        )
    else:
        try:
            executable = call.compile_marked(mark) or executable
        except Exception as e:
            notes.append(f"the lines of kernels were not found: {type(e).__name__}: {e}")
    try:
        text = "\n\n".join(m.to_string() for m in executable.hlo_modules())
    except Exception as e:
        return (
            parsed(""),
            requested,
            [*notes, f"the platform does not show the compiled program: {e}"],
        )
    return parsed(text), requested, notes
