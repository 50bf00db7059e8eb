"""The interpreter exits with work in flight: no abort, no output, and effects are complete."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest

SETUP = """
import sys, threading, time
import numpy as np
import primax_core as px
from primax_core import lax
from primax_core._runtime import shutdown

x = np.ones((200, 200), np.float32)
heavy = px.jit(lambda x: lax.fori_loop(0, 200, lambda i, c: lax.dot(c, c) * 1e-3, x))

def daemons(work, count=3):
    def forever():
        n = 0
        while True:
            n += 1
            work(n)
    for _ in range(count):
        threading.Thread(target=forever, daemon=True).start()
    time.sleep(0.4)

def slow(x):
    time.sleep(0.4)
    print("slow", flush=True)
"""

WORK = {
    "programs under way": "for _ in range(5): y = heavy(x)",
    "donated": "f = px.jit(lambda x: x + 1, donate_argnums=0); y = f(f(f(px.device_put(x))))",
    "exit within": "heavy(x); sys.exit(0)",
    "daemons that compute": "daemons(lambda n: heavy(x))",
    "daemons that operate": "daemons(lambda n: lax.sin(x[: n % 100 + 1]))",
    "daemons that put": "lax.sin(x); daemons(lambda n: px.device_put(x))",
    "daemons that compile": "daemons(lambda n: px.jit(lambda x: lax.sin(x) * n)(x[: n % 50 + 1]))",
    "daemons that call back": """
        f = px.jit(lambda x: px.pure_callback(lambda a: np.asarray(a) * 2, x, x))
        daemons(lambda n: f(x))
    """,
    "daemons that catch everything": """
        def work(n):
            try:
                heavy(x)
            except BaseException:
                time.sleep(100)
        daemons(work)
    """,
    "daemons that finalise": """
        class Finalised:
            def __del__(self):
                for _ in range(3000): pass
        def work(_):
            Finalised()
            for _ in range(1500): pass
        lax.sin(x)
        daemons(lambda n: px.tree.map(work, [0] * 1000))
    """,
    "daemons that do something else": "lax.sin(x); daemons(lambda n: time.sleep(0.001))",
    "daemons that show": """
        f = px.jit(lambda x: (px.debug.callback(lambda a: None, x), x + 1)[1])
        daemons(lambda n: f(x))
    """,
    "ordered effects of daemons": """
        f = px.jit(lambda x: px.debug.callback(lambda a: None, x, ordered=True))
        daemons(lambda n: f(x))
    """,
    "daemons that begin after the check": """
        import atexit
        def begin():
            began.set()
            time.sleep(0.4)
        began = threading.Event()
        atexit._clear()  # so that this handler runs after the library's
        atexit.register(begin)
        atexit.register(shutdown._end_threads)
        heavy(x)
        def work(n):
            while not began.is_set(): pass
            while True: heavy(x)
        daemons(work)
    """,
    "callback under way": """
        f = px.jit(lambda x: px.pure_callback(lambda a: (time.sleep(0.3), a)[1], x, x))
        y = f(x)
    """,
    "callback that computes": "y = px.jit(lambda x: px.pure_callback(lambda a: heavy(a), x, x))(x)",
    "pool": """
        from concurrent.futures import ThreadPoolExecutor
        pool = ThreadPoolExecutor(4)
        [pool.submit(heavy, x) for _ in range(4)]
    """,
}  # fmt: skip

SHOWN = {
    "unordered": ("px.jit(lambda x: (px.debug.callback(slow, x), x + 1)[1])(x)", "slow"),
    "ordered": (
        "f = px.jit(lambda x: px.debug.callback(slow, x, ordered=True)); f(x); f(x)", "slow slow",
    ),
    "after a long computation": (
        "px.jit(lambda x: px.debug.print('{}', lax.reduce_sum(heavy(x) * 0, (0, 1))))(x)", "0.0",
    ),
    "from another thread": (
        "threading.Thread(target=px.jit(lambda x: px.debug.callback(slow, x)), args=(x,)).start()",
        "slow",
    ),
    "while exiting": (
        "import atexit; atexit.register(px.jit(lambda x: px.debug.print('{}', x + 1)), 1.0)", "2.0",
    ),
}  # fmt: skip


def end_of(code: str) -> str:
    env = {k: v for k, v in os.environ.items() if not k.startswith("PRIMAX_")}
    done = subprocess.run(
        [sys.executable, "-c", SETUP + textwrap.dedent(code)],
        env=env, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, ""), (done.returncode, done.stderr)
    return " ".join(done.stdout.split())


@pytest.mark.rotate(every=4, whole=True)
@pytest.mark.parametrize("work", WORK)
def test_no_output_at_exit(work):
    assert end_of(WORK[work]) == ""


@pytest.mark.parametrize("how", SHOWN)
def test_effects_are_complete_at_exit(how):
    code, shown = SHOWN[how]
    assert end_of(code) == shown


def test_a_barrier_does_not_wait_for_effects_started_later():
    code = """
        f = px.jit(lambda x: px.debug.callback(lambda a: time.sleep(0.001), x))
        daemons(lambda n: f(x))
        px.effects_barrier()
        print("over")
    """
    assert end_of(code) == "over"


def test_exit_handlers_called_by_a_program_leave_its_threads_alone():
    code = """
        import atexit
        later = threading.Event()
        threading.Thread(target=lambda: (later.wait(), print("alive", flush=True))).start()
        heavy(x)
        atexit._run_exitfuncs()  # drops the handlers; the daemons below need the library's
        later.set()
        daemons(lambda n: heavy(x))
    """
    assert end_of(code) == "alive"
