"""After ``os.fork``, the child process works or raises an error, and never hangs."""

from __future__ import annotations

import os

import pytest
from processes import run

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")

SETUP = """
import os, signal, sys, threading, time, warnings
warnings.simplefilter("ignore")
import numpy as np
import primax_core as px
from primax_core import lax

host = np.full((300, 300), 0.5, np.float32)
x = px.device_put(host)
twice = px.jit(lambda x: x + x)
dot = px.jit(lambda x: lax.dot(x, x))
called = px.jit(lambda x: px.pure_callback(lambda v: np.asarray(v) * 2, x, x))
shown = px.jit(lambda x: (px.debug.print("shown"), x + 1)[1])
compiled = dot.lower(x).compile()
for f in (twice, dot, called, lax.sin):
    f(x).block_until_ready()
lax.sin(1.0)
y = dot(x).block_until_ready()
shown(x)
px.effects_barrier()

def busy():
    n = 0
    while True:
        n += 1
        px.jit(lambda x: x * n + lax.sin(x))(host[: n % 100 + 1])

def child(work, leave=lambda: os._exit(0)):
    # What the forked process prints; an alarm ends one that hangs.
    r, w = os.pipe()
    pid = os.fork()
    if pid == 0:
        signal.alarm(30)
        try:
            text = str(work())
        except BaseException as e:
            text = f"{type(e).__name__}: {e}"
        os.write(w, text.encode())
        leave()
    os.close(w)
    found = os.read(r, 5000).decode()
    _, status = os.waitpid(pid, 0)
    print(found, status)
    assert np.asarray(dot(x))[0, 0] == 75.0
"""
FORK_ERROR = "RuntimeError: this process was forked from one whose devices were already in use."

RAISES = {
    "an operation": "x + x",
    "an operation on a number": "lax.sin(1.0)",
    "a new operation": "lax.cos(x)",
    "a compiled function": "twice(x)",
    "one with threads of its own": "dot(x)",
    "one that was compiled ahead of time": "compiled(x)",
    "a new function": "px.jit(lambda x: x - 3)(x)",
    "a callback": "called(x)",
    "an effect": "shown(x)",
}


@pytest.mark.parametrize("busy", [False, True])
def test_running_executables_raises(busy):
    start = "for _ in range(3): threading.Thread(target=busy, daemon=True).start()\ntime.sleep(0.5)"
    calls = "\n".join(f"child(lambda: {call})" for call in RAISES.values())
    end = "sys.stdout.flush()\nos._exit(0)" if busy else ""
    lines = run(f"{SETUP}\n{start if busy else ''}\n{calls}\n{end}").splitlines()
    assert len(lines) == len(RAISES) + 1  # and the output
    for name, line in zip(RAISES, lines[1:], strict=True):
        assert line.startswith(FORK_ERROR) and line.endswith(" 0"), (name, line)


WORKS = {
    "reading": ("np.asarray(y)[0, 0]", "75.0"),
    "putting": ("np.asarray(px.device_put(np.ones((2000, 2000))))[0, 0]", "1.0"),
    "tracing": ("len(px.make_jaxpr(dot)(x).eqns)", "1"),
    "types": ("px.eval_shape(dot, x).shape", "(300, 300)"),
    "clearing": ("px.clear_caches()", "None"),
    "waiting": ("px.effects_barrier(), y.block_until_ready().shape", "(None, (300, 300))"),
    "options": ("px.enable_x64(True).__enter__()", "None"),
}


def test_what_works():
    calls = "\n".join(f"child(lambda: ({call}))" for call, _ in WORKS.values())
    lines = run(f"{SETUP}\n{calls}").splitlines()
    for (name, (_, expected)), line in zip(WORKS.items(), lines[1:], strict=True):
        assert line == f"{expected} 0", name


def test_pending_values_raise_in_the_child():
    code = """
slow = px.jit(lambda x: lax.fori_loop(0, 300, lambda i, c: lax.dot(c, c), x))
slow(x).block_until_ready()
child_of = slow(x)
child(lambda: child_of.is_ready() if child_of._buf.is_ready() else np.asarray(child_of))
"""
    line = run(SETUP + code).splitlines()[1]
    assert line.startswith(FORK_ERROR) and line.endswith(" 0")


def test_pending_effects_belong_to_the_parent():
    code = """
held = px.jit(lambda x: px.debug.callback(lambda a: time.sleep(1), x))
threading.Thread(target=held, args=(x,)).start()
time.sleep(0.3)
child(lambda: px.effects_barrier(), lambda: sys.exit(0))
"""
    assert run(SETUP + code).splitlines()[1] == "None 0"
