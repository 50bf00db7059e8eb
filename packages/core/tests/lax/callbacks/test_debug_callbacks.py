"""Debug callbacks: values at run time."""

from __future__ import annotations

import logging
import subprocess
import sys

import numpy as np
import pytest

import primax_core as px
from primax_core import debug, lax
from primax_core.errors import JaxRuntimeError

X = np.array([1.0, 2.0], np.float32)


@pytest.fixture
def said(capsys):
    def lines():
        px.effects_barrier()
        return capsys.readouterr().out.splitlines()

    return lines


def test_print_formats(said):
    def f(x, n):
        debug.print("{} {x} {n:03d} {s} {{}} {x!r}", 2.0, x=x, n=n, s="text")

    expected = "2.0 [1. 2.] 007 text {} Array([1., 2.], dtype=float32)"
    f(lax.add(X, np.float32(0)), np.int32(7))
    px.jit(f)(X, np.int32(7))
    assert said() == [expected, expected]


def test_print_options_are_those_of_the_call(said):
    with np.printoptions(precision=2):
        f = px.jit(lambda x: debug.print("{}", x)).lower(X).compile()
    f(np.array([1 / 3, 2 / 3], np.float32))
    assert said() == ["[0.33 0.67]"]


def test_trees_and_no_arguments(said):
    px.jit(lambda x: debug.print("{t[a]} {t[b][0]}", t={"a": x, "b": (x + 1, "text")}))(1)
    px.jit(lambda: debug.print("nothing"))()
    assert said() == ["1 2", "nothing"]


@pytest.mark.parametrize(
    "args, kwargs, error, text",
    [
        (("{} {}", 1.0), {}, IndexError, "index"),
        (("{x}",), {"y": 1.0}, KeyError, "x"),
        (("{}", 1.0, 2.0), {}, ValueError, "Unused positional arguments"),
        (("{x}",), {"x": 1.0, "y": 2.0}, ValueError, "Did you mean to add {y}"),
        ((X,), {}, TypeError, "debug.print takes a format string"),
    ],
)
def test_bad_formats(args, kwargs, error, text):
    with pytest.raises(error, match=text):
        debug.print(*args, **kwargs)


def test_skip_format_check(said):
    debug.print("{}", 1.0, 2.0, skip_format_check=True)
    assert said() == ["1.0"]


def test_decorators(said):
    debug.print(None, ordered=True)("{}", 3)
    debug.callback(None)(lambda x: print("got", x), 4)
    assert said() == ["3", "got 4"]


def test_vmap_prints_each_example(said):
    f = px.vmap(lambda x: debug.print("{}", x))
    f(np.arange(3))
    px.jit(f)(np.arange(3))
    px.jit(px.vmap(f))(np.arange(4).reshape(2, 2))
    px.vmap(lambda x, y: debug.print("{} {}", x, y, ordered=True), in_axes=(None, 0))(
        5, np.arange(2)
    )
    assert said() == ["0", "1", "2"] * 2 + ["0", "1", "2", "3"] + ["5 0", "5 1"]


def test_derivatives_print_in_the_forward_pass(said):
    def f(x):
        debug.print("{}", x)
        return lax.sin(x)

    assert float(px.grad(f)(1.0)) == pytest.approx(np.cos(1.0))
    px.jit(px.grad(f))(2.0)
    px.jvp(f, (3.0,), (1.0,))
    px.jit(px.linearize(f, 4.0)[1])(1.0)
    px.hessian(f)(5.0)
    assert [float(x) for x in said()][:4] == [1.0, 2.0, 3.0, 4.0]
    px.grad(px.checkpoint(f))(6.0)
    assert said() == ["6.0", "6.0"]
    px.grad(lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=2)[0])(0.5)
    assert len(said()) == 2


def test_loops_and_branches(said):
    def f(x):
        lax.fori_loop(0, 3, lambda i, c: (debug.print("i {}", i, ordered=True), c)[1], x)
        lax.cond(x > 0, lambda: debug.print("positive"), lambda: debug.print("negative"))
        return lax.while_loop(
            lambda c: c < 2, lambda c: (debug.print("c {}", c, ordered=True), c + 1)[1], x
        )

    px.jit(f)(0)
    lines = said()
    assert sorted(lines) == ["c 0", "c 1", "i 0", "i 1", "i 2", "negative"]
    assert [x for x in lines if x != "negative"] == ["i 0", "i 1", "i 2", "c 0", "c 1"]


def test_finished_examples_of_a_mapped_loop_print_too(said):
    px.vmap(
        lambda x: lax.while_loop(lambda c: c < 2, lambda c: (debug.print("{}", c), c + 1)[1], x)
    )(np.array([0, 1]))
    assert said() == ["0", "1", "1", "2"]


def test_callbacks_receive_arrays_and_other_values_unchanged():
    seen = []
    thing = object()
    px.jit(lambda x: debug.callback(lambda *a, **k: seen.append((a, k)), x, thing, "s", y=x + 1))(X)
    px.effects_barrier()
    (((x, same, text), others),) = seen
    assert isinstance(x, px.Array) and same is thing and text == "s"
    np.testing.assert_array_equal(others["y"], X + 1)


def test_callbacks_keep_their_equations():
    jaxpr = px.make_jaxpr(lambda x: debug.print("{}", x, ordered=True))(X)
    assert len(jaxpr.eqns) == 1
    assert jaxpr.effects == {debug.OrderedDebugEffect()} != {debug.DebugEffect()}
    assert "debug_callback[" in str(jaxpr)


def test_failures():
    def fails(x):
        raise KeyError("oh")

    with pytest.raises(KeyError, match="oh"):
        debug.callback(fails, 1)
    with pytest.raises(JaxRuntimeError, match="oh") as e:
        px.jit(lambda x: debug.callback(fails, x))(1)
        px.effects_barrier()
    assert isinstance(e.value.__cause__, KeyError)
    assert "the debug callback fails at" in str(e.value)


def test_log(caplog):
    with caplog.at_level(logging.INFO):
        px.jit(lambda x: debug.log("value {}", x))(3)
        px.effects_barrier()
    (record,) = caplog.records
    assert record.message == "value 3" and record.filename == "test_debug_callbacks.py"
    assert record.funcName.endswith("<lambda>") and record.name.endswith(".debug")


def run(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)


def test_the_end_of_the_process_waits_for_prints():
    done = run(
        "import primax_core as px, numpy as np\n"
        "from primax_core import lax\n"
        "m = np.eye(400, dtype=np.float32)\n"
        "f = px.jit(lambda m: lax.fori_loop(0, 20, lambda i, c: lax.dot(c, m), m))\n"
        "px.jit(lambda m: px.debug.print('end {}', lax.reduce_sum(f(m), (0, 1))))(m)\n"
    )
    assert done.returncode == 0 and done.stdout == "end 400.0\n" and done.stderr == ""


def test_unawaited_failures_are_reported_at_the_end():
    done = run(
        "import primax_core as px, time\n"
        "from primax_core import lax\n"
        "import numpy as np\n"
        "def late(x):\n"
        "    time.sleep(0.2)\n"
        "    raise KeyError('late')\n"
        "m = np.ones((400, 400), np.float32)\n"
        "f = px.jit(lambda m: (px.debug.callback(late, m), lax.dot(m, m))[1])\n"
        "try:\n"
        "    y = f(m)\n"
        "except Exception as e:\n"
        "    raise SystemExit(7 if 'late' in str(e) else 8)\n"
    )
    assert done.returncode == 7 or "KeyError: 'late'" in done.stderr, done


LOOKS = {
    "print": lambda x: debug.print("{} {a}", x, a=(x, "text")),
    "log": lambda x: debug.log("{}", x),
    "callback": lambda x: debug.callback(lambda *xs: None, x, "text"),
}


@pytest.mark.parametrize("name", LOOKS)
@pytest.mark.parametrize("how", ["jit", "vmap", "grad"])
def test_debug_callbacks_keep_no_tracers(name, how):
    look = LOOKS[name]

    def f(x):
        look(x)
        return x

    with px.checking_leaks():
        x = np.ones(2, np.float32) if how == "vmap" else 1.0
        px.block_until_ready(getattr(px, how)(f)(x))
        px.effects_barrier()
