"""``explain``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..._base import pytree
from ..._base.config import state
from ..._base.source import api_boundary
from ..._ir.jaxpr import Eqn, Jaxpr
from ..._lower import compile as _compile
from ..._runtime.array import ArrayImpl, default_sharding, spec_of
from ..._runtime.devices import platform_of
from ..._runtime.dispatch import device_of
from ..._trace.axes import axis_env
from ...lax import costs as _costs  # noqa: F401  (its table is the fallback of the kind)
from ..arguments import check_callable
from ..jit import JitFunction, jit, placement
from ..retraces import changes
from .costs import equations, tally
from .drawing import drawn
from .kernels import kernels_of
from .memory import peak_of
from .phases import Watch
from .places import Places
from .report import CompiledMemory, Report, Signature

_flatten = pytree.tree_flatten

# Beyond this, compiling once more for the lines of kernels would take too long.
_PATIENCE_SECONDS = 20.0


@api_boundary
def explain(fun: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Report:
    """What a function's program is for some arguments, what it costs, and what became of it.

    The function is traced and compiled as a call would be, and not run. The report tells

    - how large its program is, by primitive;
    - operations on floats, evaluations of special functions and memory traffic, by line of source;
    - how much memory it needs, and where the most;
    - what the compiled program runs (fusions, other kernels), and from which lines;
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
    jitted = fun if isinstance(fun, JitFunction) else jit(fun)
    staged = jitted._jit_cache
    bound, static_key, dynamic, named = jitted._bind_static(args, kwargs)
    leaves, in_tree = _flatten((dynamic, named))
    avals = [staged.aval_of(x, i, in_tree, static_key) for i, x in enumerate(leaves)]
    key = (state.trace_key, axis_env.key, static_key, in_tree, *avals)
    specs = [
        x._spec if type(x) is ArrayImpl else spec_of(a, default_sharding(), False)
        for x, a in zip(leaves, avals)
    ]
    known = list(staged.traced)
    with Watch() as watch:
        traced = staged.trace(bound, static_key, in_tree, avals)
        exe = staged.executable(traced.jaxpr, specs, in_tree)
    return _report(
        staged, traced.jaxpr, specs, exe, in_tree, watch, _signatures(staged, key, known)
    )


def _report(staged, jaxpr: Jaxpr, specs, exe: Any, in_tree, watch: Watch, signatures) -> Report:
    places = Places()
    kernels, notes = _kernels(staged, jaxpr, specs, exe, in_tree, watch, places)
    info = jaxpr.debug_info
    return Report(
        name=staged.name,
        place=f"{info.filename}:{info.line}" if info.filename else "",
        platform=platform_of(_device(staged, specs)),
        jaxpr=jaxpr,
        signatures=signatures,
        equations=equations(jaxpr),
        tally=tally(jaxpr, places),
        xla_cost=_xla_cost(exe),
        peak=peak_of(jaxpr, places),
        memory=_memory(exe),
        kernels=tuple(kernels),
        phases=watch.phases(),
        notes=tuple(notes),
        drawing=drawn(jaxpr, places),
    )


def _check(fun: Any) -> None:
    check_callable(fun)
    if state.trace is not None:
        raise TypeError(
            "explain compiles a function, so it cannot be used inside a function that is being "
            "transformed: call it outside, with example arguments"
        )


def _signatures(staged: Any, key: tuple, known: list[tuple]) -> tuple[Signature, ...]:
    order = known if key in known else [*known, key]
    found = []
    for i, k in enumerate(order):
        names = [staged.argument_name(j, k[3], k[2]) for j in range(len(k) - 4)]
        types = tuple((n, a.str_short()) for n, a in zip(names, k[4:]))
        found.append(Signature(types, tuple(changes(staged, k, order[:i])), k == key))
    return tuple(found)


def _device(staged: Any, specs: Any) -> Any:
    sharding = placement(staged.compile.args[1]) or device_of(specs)
    return next(iter(sharding.device_set))


def _xla_cost(exe: Any) -> dict[str, float]:
    try:
        found: Any = exe.raw.cost_analysis()
    except Exception:  # not every plug-in has it
        return {}
    if isinstance(found, list):
        found = found[0] if found else {}
    return {k: found[k] for k in ("flops", "transcendentals", "bytes accessed") if k in found}


def _memory(exe: Any) -> CompiledMemory:
    try:
        stats = exe.raw.get_compiled_memory_stats()
    except Exception:  # not every plug-in has it
        return CompiledMemory(*[None] * 6)

    def figure(name: str) -> int | None:
        value = getattr(stats, f"{name}_in_bytes", None)
        return value if isinstance(value, int) else None

    return CompiledMemory(
        figure("argument_size"), figure("output_size"), figure("temp_size"),
        figure("alias_size"), figure("generated_code_size") or None, figure("peak_memory") or None,
    )  # fmt: skip


def _kernels(staged, jaxpr: Jaxpr, specs, exe: Any, in_tree, watch: Watch, places: Places):
    """What the executable runs. The lines that kernels come from are found by compiling the program
    once more with its equations' lines in its names."""
    took = watch.durations.get(_compile.monitoring.COMPILE, 0.0)
    notes = []
    raw = exe.raw
    if took > _PATIENCE_SECONDS:
        notes.append(
            f"compiling took {took:.0f} s, so it was not done again to find the lines of kernels"
        )
    else:
        try:
            raw = _marked(staged, jaxpr, specs, in_tree, places) or raw
        except Exception as e:
            notes.append(f"the lines of kernels were not found: {type(e).__name__}: {e}")
    try:
        text = "\n\n".join(m.to_string() for m in raw.hlo_modules())
    except Exception as e:
        return [], [*notes, f"the platform does not show the compiled program: {e}"]
    return kernels_of(text, places), notes


def _marked(staged, jaxpr: Jaxpr, specs, in_tree, places: Places) -> Any:
    def mark(eqn: Eqn) -> str:
        return f"#{places.number(places.line(eqn.source_info))}"

    o = staged.compile.args[1]
    device = _device(staged, specs)
    lowered = _compile.lower_module(
        jaxpr, staged.name, platform_of(device), donated=staged.donated(in_tree),
        keep_unused=o.keep_unused, sharding=placement(o) or device_of(specs), mark=mark,
    )  # fmt: skip
    return _compile.compile_module(lowered, (device,), o.compiler_options).raw
