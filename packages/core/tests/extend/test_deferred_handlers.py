"""Native functions whose handlers are made when a program needs them."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from native_library import library, path
from processes import run

from primax_core import eval_shape, jit, make_jaxpr
from primax_core.extend import Primitive, abstract, lower, native

X = np.float32([1, 2])


def caller(target: str, **load: Any) -> Any:
    """A compiled function that calls a native function, registered with these options."""
    native.register(target, **load)
    copy_p = Primitive(target)
    copy_p.rule(abstract)(lambda x: x)
    copy_p.rule(lower)(lambda ctx, x: native.call(ctx, target, [x])[0])
    return jit(copy_p.bind)


class Loads:
    """Counts calls; the first ``failures`` of them raise an error."""

    def __init__(self, result: Any = None, failures: int = 0, error: Any = None) -> None:
        self.result, self.failures, self.error, self.calls = result, failures, error, 0

    def load(self) -> Any:
        self.calls += 1
        if self.calls <= self.failures:
            raise self.error
        return library().acme_memory if self.result is None else self.result


def test_programs_load_it_once_and_tracing_does_not():
    loads = Loads()
    call = caller("acme_deferred", load=loads.load)
    assert native.is_registered("acme_deferred")
    assert eval_shape(call, X).shape == (2,)
    make_jaxpr(call)(X)
    lowered = call.lower(X)
    assert "@acme_deferred" in lowered.as_text() and loads.calls == 0
    compiled = lowered.compile()
    assert loads.calls == 1
    assert compiled(X).tolist() == call(X).tolist() == [1, 2]
    assert jit(lambda x: call(call(x)))(X).tolist() == [1, 2]
    assert loads.calls == 1


def test_threads_wait_for_the_one_that_loads():
    loads = Loads()
    barrier = threading.Barrier(8)

    def load():
        time.sleep(0.1)
        return loads.load()

    call = caller("acme_deferred_threads", load=load)

    def run_in_thread(n):
        x = np.arange(n, dtype=np.float32)  # programs of different shapes are compiled in parallel
        barrier.wait()
        return np.asarray(call(x)).tolist() == x.tolist()

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(run_in_thread, range(1, 9)))
    assert loads.calls == 1


def test_other_threads_register_while_it_loads():
    # The lock of the registrations is free: imports of other threads do not wait.
    loading, registered = threading.Event(), threading.Event()

    def load():
        loading.set()
        assert registered.wait(30)
        return library().acme_memory

    def register():
        assert loading.wait(30)
        native.register("acme_meanwhile", library().acme_memory)
        native.register("acme_waits", platform="cuda", load=load)
        registered.set()

    call = caller("acme_waits", load=load)
    thread = threading.Thread(target=register)
    thread.start()
    assert call(X).tolist() == [1, 2]
    thread.join()


def test_stages_and_platforms():
    handler = library().acme_memory
    loads = Loads({"execute": handler})
    call = caller("acme_deferred_stages", load=loads.load)
    native.register("acme_deferred_stages", load=loads.load)  # the same function
    native.register("acme_deferred_stages", load=loads.load, platform="gpu")  # no plugin runs
    assert call(X).tolist() == [1, 2] and loads.calls == 1


@pytest.mark.parametrize("kind", [ImportError, KeyError])
def test_its_error_keeps_its_type_and_names_the_function(kind):
    target = f"acme_fails_{kind.__name__}"
    loads = Loads(failures=2, error=kind("no compiler"))
    call = caller(target, load=loads.load)
    for _ in range(2):
        with pytest.raises(kind, match="no compiler") as caught:
            call(X)
        assert f"loads the native function {target!r} by load at {__file__}" in str(
            caught.value.__notes__[0]
        )
    assert call(X).tolist() == [1, 2]
    assert loads.calls == 3


def test_results_that_are_no_handlers():
    call = caller("acme_no_handler", load=lambda: 8)
    with pytest.raises(TypeError, match="'acme_no_handler' is a int, but it is to be a capsule"):
        call(X)


def test_a_program_in_its_own_load():
    call: Any = None
    call = caller("acme_recursive", load=lambda: call(X))
    with pytest.raises(RuntimeError, match="'acme_recursive' runs a program that needs this"):
        call(X)


def test_registrations_that_are_not_valid():
    handler, loads, others = library().acme_memory, Loads(), Loads()
    for options in ({"handler": handler, "load": loads.load}, {"load": "acme"}):
        with pytest.raises(TypeError, match="pass a handler, or load=, a function that returns it"):
            native.register("acme_deferred_bad", **options)
    native.register("acme_deferred_twice", load=loads.load)
    for options in ({"handler": handler}, {"load": others.load}):
        with pytest.raises(ValueError, match="registered for cpu with another handler"):
            native.register("acme_deferred_twice", **options)


PROGRAM = """
import ctypes, os
import numpy as np
import primax_core as px
from primax_core import monitoring
from primax_core.extend import Primitive, abstract, lower, native

hits, loads = [], []
monitoring.register_event_listener(lambda event, **_: hits.append(event))

def load():
    loads.append(1)
    if "BROKEN" in os.environ:
        raise KeyError("broken")
    return ctypes.CDLL(os.environ["LIBRARY"]).acme_memory

native.register("acme_memory", load=load)
copy_p = Primitive("acme_copy")
copy_p.rule(abstract)(lambda x: x)
copy_p.rule(lower)(lambda ctx, x: native.call(ctx, "acme_memory", [x])[0])
try:
    print(np.asarray(px.jit(copy_p.bind)(np.float32([1, 2]))).tolist(), len(loads))
except KeyError as error:
    print(error, error.__notes__[0].partition(" by ")[0])
print(sum("cache_hits" in e for e in hits))
"""


def test_an_executable_from_the_disk_loads_it(tmp_path):
    env = {"PRIMAX_COMPILATION_CACHE_DIR": str(tmp_path), "LIBRARY": path()}
    assert run(PROGRAM, **env).splitlines()[-2:] == ["[1.0, 2.0] 1", "0"]
    assert run(PROGRAM, **env).splitlines()[-2:] == ["[1.0, 2.0] 1", "1"]
    text, _ = run(PROGRAM, **env, BROKEN="1").splitlines()
    assert text == "'broken' raised while a program loads the native function 'acme_memory'"


SAVED = """
import ctypes, os, pickle
import numpy as np
from primax_core import jit, serialize_executable
from primax_core.extend import Primitive, abstract, lower, native

X = np.float32([1, 2])
loads = []

def load():
    loads.append(1)
    if len(loads) == FAILURES:
        raise KeyError("broken")
    return ctypes.CDLL(os.environ["LIBRARY"]).acme_memory

native.register("acme_saved", load=load)
"""
SAVE = """
copy_p = Primitive("acme_copy")
copy_p.rule(abstract)(lambda x: x)
copy_p.rule(lower)(lambda ctx, x: native.call(ctx, "acme_saved", [x])[0])
compiled = jit(copy_p.bind).lower(X).compile()
with open(os.environ["SAVED"], "wb") as file:
    pickle.dump(serialize_executable.serialize(compiled), file)
"""
READ = """
with open(os.environ["SAVED"], "rb") as file:
    saved = pickle.load(file)
try:
    serialize_executable.deserialize_and_load(*saved)
except KeyError as error:
    print(error)
print(serialize_executable.deserialize_and_load(*saved)(X).tolist(), len(loads))
"""


def test_saved_executables_load_it(tmp_path):
    env = {"SAVED": str(tmp_path / "saved"), "LIBRARY": path()}
    run(SAVED.replace("FAILURES", "0") + SAVE, **env)
    text = run(SAVED.replace("FAILURES", "1") + READ, **env)
    assert text.splitlines() == ["'broken'", "[1.0, 2.0] 2"]
