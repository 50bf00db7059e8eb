"""The command line of ``debug.breakpoint``."""

from __future__ import annotations

import io

import numpy as np
import pytest

import primax_core as px
from primax_core import lax
from primax_core.errors import JaxRuntimeError
from primax_interpreters import debugger

X = np.array([1.0, 2.0], np.float32)


def talk(commands, f=None, *args, compiled=True):
    """The output of the command line for some commands."""
    out = io.StringIO()

    def stopped(x, y=None):
        z = x * 2
        unrelated = {"deep": [z, "text"]}
        debugger.breakpoint(stdin=io.StringIO("\n".join(commands) + "\n"), stdout=out)
        return z, unrelated["deep"][0]

    f = f or stopped
    (px.jit(f) if compiled else f)(*(args or (X,)))
    px.effects_barrier()
    return out.getvalue().replace("(primax) ", "")


@pytest.mark.parametrize("compiled", [False, True])
def test_values_of_variables(compiled):
    said = talk(["p z", "x + z", "unrelated['deep'][1]", "pp x", "c"], compiled=compiled)
    assert "in stopped\n-> debugger.breakpoint(" in said
    assert said.count("rray([2., 4.], dtype=float32") == 1
    assert "rray([3., 6.]" in said and "'text'" in said and "rray([1., 2.]" in said


def test_frames():
    said = talk(["bt", "u", "p commands[1]", "d", "d", "p z", "c"])
    assert "in talk" in said and "in test_frames" in said
    assert "\n'u'\n" in said
    assert "this is the innermost frame" in said
    assert said.rstrip().endswith("Array([2., 4.], dtype=float32)")


def test_source_variables_and_help():
    said = talk(["l", "a", "help p", "", "c"])
    assert "->" in said and "z = x * 2" in said
    assert "unrelated = {'deep': [Array(" in said
    assert "print the value of an expression" in said


def test_errors_of_expressions_do_not_end_it():
    said = talk(["p nothing", "1 +", "p 1 + 1", "c"])
    assert "NameError: name 'nothing' is not defined" in said and "SyntaxError" in said
    assert said.rstrip().endswith("2")


def test_the_end_of_the_input_continues():
    assert talk(["p 7"]).rstrip().endswith("7")


def test_quitting_ends_the_program():
    with pytest.raises(JaxRuntimeError, match=r"stopped at debug\.breakpoint"):
        talk(["q"])


def test_in_loops_and_under_vmap():
    out = io.StringIO()

    def body(c, _):
        debugger.breakpoint(stdin=io.StringIO("p c\nc\n"), stdout=out)
        return c + 1, None

    px.jit(lambda x: lax.scan(body, x, None, length=2))(5)
    px.effects_barrier()
    assert "5" in out.getvalue() and out.getvalue().count(" in body") == 2


def test_number_of_frames():
    def f(x):
        debugger.breakpoint(num_frames=1, stdin=io.StringIO("bt\nc\n"), stdout=out)
        return x

    out = io.StringIO()
    px.jit(f)(1)
    px.effects_barrier()
    assert "in test_number_of_frames" not in out.getvalue()


def test_a_token_is_returned():
    f = px.jit(
        lambda x: debugger.breakpoint(token=x + 1, stdin=io.StringIO("c\n"), stdout=io.StringIO())
    )
    assert int(f(1)) == 2


def test_other_backends():
    with pytest.raises(ValueError, match="only backend"):
        debugger.breakpoint(backend="web")
    with pytest.raises(TypeError, match="does not take colour"):
        debugger.breakpoint(colour=True)


@pytest.mark.parametrize("how", ["jit", "vmap", "grad"])
def test_breakpoints_keep_no_tracers(how):
    def f(x):
        y = x * 2
        debugger.breakpoint(stdin=io.StringIO("p y\nc\n"), stdout=io.StringIO())
        return y

    with px.checking_leaks():
        x = np.ones(2, np.float32) if how == "vmap" else 1.0
        px.block_until_ready(getattr(px, how)(f)(x))
        px.effects_barrier()
