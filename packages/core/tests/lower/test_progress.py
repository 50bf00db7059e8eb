"""The line about a compilation that takes long."""

import io
import sys
import time

import numpy as np
import pytest

import primax_core as px
from primax_core import lax
from primax_core._base.config import config, state
from primax_core._lower import progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


class Closed(Terminal):
    def isatty(self):
        raise ValueError("I/O operation on closed file")


class Breaking(Terminal):
    def write(self, text):
        raise OSError("the terminal is gone")


class Lowered:
    """The attributes of a lowered module that the line shows."""

    name = "step"

    class jaxpr:
        class debug_info:
            filename, line = "train.py", 12


@pytest.fixture
def written(monkeypatch):
    """Run a compilation that ends after its line was written; the text that the stream gets."""
    monkeypatch.setattr(progress, "PERIOD", 0.01)

    def run(stream, delay=0.02, choice="auto", lines=True):
        monkeypatch.setattr(progress, "DELAY", delay)
        monkeypatch.setattr(sys, "stderr", stream)
        before = state.compilation_progress
        config.update("compilation_progress", choice)
        try:
            with progress.shown(Lowered()):
                latest = time.monotonic() + (60 if lines else 0.1)
                while time.monotonic() < latest and "Compiling" not in stream.getvalue():
                    time.sleep(0.01)
        finally:
            config.update("compilation_progress", before)
        return stream.getvalue()

    return run


def test_line_is_written_and_removed(written):
    *lines, blank, end = written(Terminal()).split("\r")
    assert lines[0] == ""
    assert set(lines[1:]) == {"Compiling step (train.py:12): 0 s"}
    assert blank.strip() == "" and len(blank) == len(lines[1])
    assert end == ""


def test_nothing_is_written_for_short_compilations(written):
    assert written(Terminal(), delay=60, lines=False) == ""


@pytest.mark.parametrize(
    "stream, choice, lines",
    [(io.StringIO, "auto", False), (io.StringIO, "on", True), (Terminal, "off", False),
     (Closed, "auto", False), (Breaking, "on", False)],
)  # fmt: skip
def test_streams_and_choices(written, stream, choice, lines):
    assert ("Compiling step" in written(stream(), choice=choice, lines=lines)) == lines


def test_notebooks_are_recognised(written, monkeypatch):
    monkeypatch.setitem(sys.modules, "ipykernel", object())
    assert "Compiling step" in written(io.StringIO())


def test_one_of_several_compilations_is_shown(written):
    with progress._one_line:
        assert written(Terminal(), lines=False) == ""


def test_jit_names_the_function_and_its_line(monkeypatch):
    number = np.float32(time.time_ns() % 1e6)  # no compiled function is found on disk

    @px.jit
    def slow_to_compile(x):
        for _ in range(30):
            x = lax.cumsum(lax.sin(x)) + number
        return x

    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(progress, "DELAY", 0.0)
    slow_to_compile(np.arange(1237, dtype=np.float32))
    line = test_jit_names_the_function_and_its_line.__code__.co_firstlineno + 3
    assert f"Compiling slow_to_compile ({__file__}:{line}): " in stream.getvalue()


def test_errors_of_the_compilation_pass(written):
    with pytest.raises(KeyError), progress.shown(Lowered()):
        raise KeyError("no such thing")


def test_invalid_choices_are_refused():
    with pytest.raises(ValueError, match="compilation_progress"):
        config.update("compilation_progress", "sometimes")
