"""Source locations and tracebacks of errors."""

import builtins
import traceback
import warnings

import pytest

from primax_core._base import source
from primax_core._base.config import traceback_filtering
from primax_core._base.pytree import tree_map


def test_capture_returns_the_callers_line():
    here = source.capture()
    at = source.locate(here)
    assert at.file == __file__
    assert at.line == test_capture_returns_the_callers_line.__code__.co_firstlineno + 1
    assert at.column == 12
    assert at.function == "test_capture_returns_the_callers_line"
    assert (
        source.summarize(here) == f"{__file__}:{at.line}:12 (test_capture_returns_the_callers_line)"
    )
    assert "here = source.capture()" in source.user_frame_text(here)


def test_capture_skips_library_frames():
    # tree_map belongs to the library, so the location is the line of its call.
    captured = tree_map(called_back, 1)
    assert source.locate(captured).function == "called_back"


def called_back(_):
    return source.capture()


def as_library(filename, code):
    """Run code with a given file name."""
    namespace = {"source": source}
    exec(compile(code, filename, "exec"), namespace)
    return namespace


def test_registered_paths_are_skipped(tmp_path):
    namespace = as_library(
        str(tmp_path / "wheel" / "inside.py"), "def f(): return source.capture()"
    )
    assert source.locate(namespace["f"]()).function == "f"
    source.register_internal_path(str(tmp_path / "wheel"))
    assert source.locate(namespace["f"]()).file == __file__


def test_capture_stack():
    def inner():
        return source.capture_stack(2)

    names = [source.locate(place).function.rsplit(".")[-1] for place in inner()]
    assert names == ["inner", "test_capture_stack"]


def test_unknown_location():
    assert source.summarize(None) == "<unknown place>"
    assert source.user_frame_text(None) == "  <unknown place>"


def test_summarize_function():
    text = source.summarize_function(called_back)
    assert text == f"called_back at {__file__}:{called_back.__code__.co_firstlineno}"
    assert source.summarize_function(len) == "len"


@pytest.fixture
def library(tmp_path):
    """Functions in a file registered as library code."""
    path = tmp_path / "library"
    source.register_internal_path(str(path))
    code = """
def boundary(fun):
    try:
        return inner(fun)
    except Exception as error:
        source.fold_traceback(error)
        raise

def inner(fun):
    return fun()

def on_purpose():
    raise ValueError("told")

def by_accident():
    return {}["missing"]

def warns():
    source.warn("careful")
"""
    return as_library(str(path / "module.py"), code)


def frames(fun):
    with pytest.raises(Exception) as info:
        fun()
    return [frame.name for frame in traceback.extract_tb(info.value.__traceback__)], info.value


def test_library_frames_are_folded(library):
    def user():
        raise ValueError("mine")

    def call():
        library["boundary"](user)

    names, _ = frames(call)
    assert names[-2:] == ["call", "user"]
    assert "boundary" not in names


def test_a_library_error_ends_at_the_users_line(library):
    def call():
        library["boundary"](library["on_purpose"])

    assert frames(call)[0][-1] == "call"


def test_an_unexpected_error_keeps_its_library_frame(library):
    def call():
        library["boundary"](library["by_accident"])

    assert frames(call)[0][-2:] == ["call", "by_accident"]


def test_nested_boundaries(library):
    def call():
        library["boundary"](lambda: library["boundary"](library["on_purpose"]))

    names, _ = frames(call)
    assert names[-2:] == ["call", "<lambda>"]


def test_filtering_modes(library):
    def call():
        library["boundary"](library["on_purpose"])

    with traceback_filtering("off"):
        assert frames(call)[0][-3:] == ["boundary", "inner", "on_purpose"]
    with traceback_filtering("remove_frames"):
        names, error = frames(call)
        assert names[-1] == "call"
        assert "PRIMAX_TRACEBACK_FILTERING" in error.__notes__[0]
    with traceback_filtering("hide_frames"):
        names, error = frames(call)
        assert names[-3:] == ["boundary", "inner", "on_purpose"]
        assert hidden_in(error) == ["boundary", "inner", "on_purpose"]


def hidden_in(error):
    frames = (frame for frame, _ in traceback.walk_tb(error.__traceback__))
    return [f.f_code.co_name for f in frames if f.f_locals.get("__tracebackhide__")]


def test_frames_are_hidden_in_ipython(library, monkeypatch):
    def call():
        library["boundary"](library["on_purpose"])

    with traceback_filtering("auto"):
        names, error = frames(call)
        assert names[-1] == "call" and not hidden_in(error)
        monkeypatch.setattr(builtins, "__IPYTHON__", True, raising=False)
        names, error = frames(call)
        assert names[-3:] == hidden_in(error) == ["boundary", "inner", "on_purpose"]


def test_warnings_point_at_the_user(library):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        library["warns"]()
    assert caught[0].filename == __file__
