"""The report of a program: missing names, retraces, eager operations, time of compilation.

Everything is recorded through public interfaces of the core: listeners for events, the option
``explain_cache_misses``, and a watcher of executables (``extend.runtime.watch_programs``).
"""

from __future__ import annotations

import atexit
import logging
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from types import CodeType, FrameType
from typing import Any, Final, NamedTuple, TextIO

from primax_core import config, monitoring
from primax_core.extend import Jaxpr, is_internal_code
from primax_core.extend.runtime import define_option, watch_programs

from . import _missing
from ._top import VERSION

LEAST_OPERATIONS: Final = 100
"""Operations that a function dispatches one by one before it is listed."""
SHOWN: Final = 10
"""Entries of a section; the rest is counted."""
_LINES: Final = 3
_OPTION: Final = "as_jax_report"
_LOGGER: Final = "primax_core"
_HEAD: Final = "TRACING CACHE MISS for "
_PHASES: Final = {
    "tracing": "/jax/core/compile/jaxpr_trace_duration",
    "lowering": "/jax/core/compile/jaxpr_to_mlir_module_duration",
    "compilation and loading": "/jax/core/compile/backend_compile_duration",
}
_EVENTS: Final = {event: phase for phase, event in _PHASES.items()}
_CACHE_HIT: Final = "/jax/compilation_cache/cache_hits"
_COMPILED: Final = "compilation and loading"


class Line(NamedTuple):
    """A line of the program or of a library."""

    file: str
    line: int
    function: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line} ({self.function})"


class Report:
    """Record of a program until :meth:`text` is called. :meth:`start` begins it."""

    def __init__(self) -> None:
        self.missing: dict[tuple[str, Line], None] = {}
        self.traces: dict[tuple[str, Line], list[str]] = {}
        self.operations: dict[CodeType, Counter[tuple[int, str]]] = {}
        self.spans: dict[str, list[tuple[float, float]]] = {phase: [] for phase in _PHASES}
        self.executables: dict[str, list[float]] = {}
        self.loaded = 0

    def start(self) -> None:
        """Begin to record, in all threads of the process."""
        _missing.listen(self.note_missing)
        monitoring.register_event_time_span_listener(self.note_span)
        monitoring.register_event_listener(self.note_event)
        define_option(_OPTION, bool, False, "dispatch", "operations are counted for a report")
        watch_programs(_OPTION, self.watch)
        logging.getLogger(_LOGGER).addFilter(_Misses(self, shown=config.explain_cache_misses))
        config.update("explain_cache_misses", True)
        config.update(_OPTION, True)

    # Recording

    def note_missing(self, name: str, code: CodeType, line: int) -> None:
        """Record a name that a line asks for and Primax does not have."""
        self.missing[name, Line(code.co_filename, line, code.co_qualname)] = None

    def note_span(self, event: str, start: float, end: float, **names: Any) -> None:
        """Record the time of tracing, lowering or compilation."""
        phase = _EVENTS.get(event)
        if phase is not None:
            self.spans[phase].append((start, end))
            if phase == _COMPILED:
                self.executables.setdefault(str(names.get("fun_name")), []).append(end - start)

    def note_event(self, event: str, **names: Any) -> None:
        """Count executables that come from the disk cache."""
        self.loaded += event == _CACHE_HIT

    def note_trace(self, name: str, reason: str) -> None:
        """Record that a compiled function is traced, and the reason."""
        frame = _user_frame()
        if frame is not None:
            code = frame.f_code
            line = Line(code.co_filename, frame.f_lineno, code.co_qualname)
            self.traces.setdefault((name, line), []).append(reason)

    def watch(self, jaxpr: Jaxpr) -> Callable[[Sequence[Any]], Callable[[Any], None]] | None:
        """Return the watcher of an executable; ``None`` for functions that the user compiles."""
        if jaxpr.debug_info.filename is not None:
            return None
        name = jaxpr.debug_info.name
        if name == "<unknown>" and jaxpr.eqns:
            name = jaxpr.eqns[0].primitive.name

        def count(args: Sequence[Any]) -> Callable[[Any], None]:
            self.count(name)
            return _nothing

        return count

    def count(self, name: str) -> None:
        """Count an operation at the innermost line outside the library."""
        frame = _user_frame()
        if frame is not None:
            lines = self.operations.setdefault(frame.f_code, Counter())
            lines[frame.f_lineno, name] += 1

    # Text

    def text(self) -> str:
        """Return the report."""
        sections = [
            f"report of primax.as_jax (the interface of jax {VERSION})",
            *_section("names that Primax does not have", self._missing()),
            *_section("functions that were traced more than once", self._retraces()),
            *_section("operations that ran one by one, outside of jit", self._islands()),
            *_section("time", self._times()),
        ]
        return "\n".join(sections)

    def _missing(self) -> list[str]:
        lines = [f"{name}, asked for at {line}" for name, line in sorted(self.missing)]
        return _first(lines)

    def _retraces(self) -> list[str]:
        traced = sorted(self.traces.items(), key=lambda item: -len(item[1]))
        lines = []
        for (name, line), reasons in traced:
            if len(reasons) > 1:
                lines.append(f"{name}: {len(reasons)} times, called at {line}")
                new = Counter(reasons).most_common(_LINES)
                lines += [f"  {n} times: {reason}" for reason, n in new]
        return _first(lines, SHOWN * (1 + _LINES))

    def _islands(self) -> list[str]:
        lines = []
        by_function = sorted(self.operations.items(), key=lambda item: -item[1].total())
        for code, counts in by_function:
            if counts.total() < LEAST_OPERATIONS:
                break
            line = Line(code.co_filename, code.co_firstlineno, code.co_qualname)
            lines.append(f"{counts.total()} operations in {line}")
            lines += [f"  {n} times {name} in line {at}" for (at, name), n in _most(counts)]
        return _first(lines, SHOWN * (1 + _LINES))

    def _times(self) -> list[str]:
        lines = [f"{phase}: {covered(spans):.1f} s" for phase, spans in self.spans.items()]
        compiled = sum(map(len, self.executables.values()))
        lines.append(f"executables: {compiled}, of which {self.loaded} came from the disk cache")
        slowest = sorted(self.executables.items(), key=lambda item: -sum(item[1]))
        for name, seconds in slowest[:_LINES]:
            lines.append(f"  {sum(seconds):.1f} s for {len(seconds)} of {name}")
        return lines


class _Misses(logging.Filter):
    """Filter that records the reasons of retraces, and removes them from the log if they appear
    there only because of the report."""

    def __init__(self, report: Report, *, shown: bool) -> None:
        super().__init__()
        self.report = report
        self.shown = shown

    def filter(self, record: logging.LogRecord) -> bool:
        head, *reason = record.args if isinstance(record.args, tuple) and record.args else ("",)
        if not str(head).startswith(_HEAD):
            return True
        self.report.note_trace(str(head).removeprefix(_HEAD), " ".join(map(str, reason)))
        return self.shown


def _user_frame() -> FrameType | None:
    """The innermost frame outside the library and the log."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and (
        is_internal_code(frame.f_code) or frame.f_globals.get("__name__") == "logging"
    ):
        frame = frame.f_back
    return frame


def covered(spans: Iterable[tuple[float, float]]) -> float:
    """Return the seconds that lie in at least one span: functions are traced within others."""
    total, until = 0.0, float("-inf")
    for start, end in sorted(spans):
        if end > until:
            total += end - max(start, until)
            until = end
    return total


def _most(counts: Counter[tuple[int, str]]) -> list[tuple[tuple[int, str], int]]:
    return counts.most_common(_LINES)


def _nothing(results: Any) -> None:
    """Results are not looked at."""


def _first(lines: list[str], limit: int = SHOWN) -> list[str]:
    rest = len(lines) - limit
    return lines if rest <= 0 else [*lines[:limit], f"and {rest} lines more"]


def _section(title: str, lines: list[str]) -> list[str]:
    return [title, *[f"  {line}" for line in lines or ["none"]]]


def start(file: TextIO | None = None) -> Report:
    """Record from now on, and print the report when the process ends, by default to stderr."""
    report = Report()
    report.start()
    atexit.register(lambda: print(report.text(), file=file or sys.stderr, flush=True))
    return report
