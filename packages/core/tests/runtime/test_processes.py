"""Several processes: service, members, clients over all processes, and leaving them."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import textwrap
import time

import pytest

START = """
import os, signal, sys, threading, time
import numpy as np
import primax_core as pc
from primax_core.extend import processes as core
mode, rank, n, ports = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:]

def member(number=0):
    address = f"127.0.0.1:{ports[number]}"
    return core.Member(address, rank, n, heartbeat=10, patience=20)

def attempt(what):
    try:
        return what()
    except Exception as e:
        return f"{type(e).__name__}: {e}"
"""

HOST = """
import sys
from primax_core.extend import processes as core
n, ports = int(sys.argv[1]), sys.argv[2:]
services = [core.Service(f"127.0.0.1:{port}", n, shutdown=1) for port in ports]
print("ready", flush=True)
sys.stdin.read()
for service in services:
    service.end()
"""


def free_ports(count):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [str(s.getsockname()[1]) for s in sockets]
    for s in sockets:
        s.close()
    return ports


def environment():
    env = {k: v for k, v in os.environ.items() if not k.startswith("PRIMAX_")}
    return {**env, "PRIMAX_NUM_CPU_DEVICES": "1"}


def together(code, *, mode="", n=2, generations=1, timeout=60):
    """The output of ``n`` processes that run the code, and their exit statuses.

    A process of its own hosts the services, as a supervisor does.
    """
    ports = free_ports(generations)
    pipes = {"stdout": subprocess.PIPE, "text": True, "env": environment()}
    host = subprocess.Popen(
        [sys.executable, "-c", HOST, str(n), *ports], stdin=subprocess.PIPE, **pipes
    )
    ranks = []
    try:
        assert host.stdout.readline().strip() == "ready"
        source = START + textwrap.dedent(code)
        for rank in range(n):
            command = [sys.executable, "-c", source, mode, str(rank), str(n), *ports]
            ranks.append(subprocess.Popen(command, stderr=subprocess.STDOUT, **pipes))
        deadline = time.monotonic() + timeout
        outputs = [p.communicate(timeout=max(1, deadline - time.monotonic()))[0] for p in ranks]
    finally:
        for p in [*ranks, host]:
            if p.poll() is None:
                p.kill()
            p.wait()
            p.stdout.close()
        host.stdin.close()
    return outputs, [p.returncode for p in ranks]


def test_nothing_is_loaded_for_one_process():
    code = "import primax_core, sys; print('primax_core._runtime.processes' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "False"


def test_keys_barriers_and_the_living():
    outputs, statuses = together("""
        m = member()
        m.set(f"of/{rank}", f"value {rank}")
        print(m.get(f"of/{1 - rank}", 10), m.peek("nothing"))
        m.barrier("stored", 10)
        print(m.folder("of"))
        m.barrier("read", 10)
        print(attempt(lambda: m.set(f"of/{rank}", "again")))
        m.set(f"of/{rank}", "again", overwrite=True)
        print(attempt(lambda: m.get("never", 0.2)))
        if rank == 0:
            print(attempt(lambda: m.barrier("alone", 0.3)))
        m.barrier("all", 10)
        print(m.alive())
        m.leave()
        m.leave()
        print(attempt(lambda: m.peek("of/0")))
    """)
    assert statuses == [0, 0], outputs
    lines = [line for line in outputs[0].splitlines() if "Using experimental" not in line]
    assert lines[0] == "value 1 None"
    assert lines[1] == "{'of/0': 'value 0', 'of/1': 'value 1'}"
    assert lines[2] == "ValueError: the key 'of/0' has a value already"
    assert lines[3] == "TimeoutError: no process has stored the key 'never' within 0.2 s"
    assert lines[4] == (
        "BarrierTimeoutError: rank 1 did not come to the barrier 'alone' within 0.3 s"
    )
    assert lines[5].endswith("/errors/BarrierTimeoutError.html")
    assert lines[6] == "[0, 1]"
    assert lines[7].startswith("LeftGenerationError: rank 0 has left 127.0.0.1:")
    assert lines[8].endswith("/errors/LeftGenerationError.html")


def test_devices_and_a_collective_of_all_processes():
    outputs, statuses = together("""
        m = member()
        core.join(m, local_devices=2, host="127.0.0.1")
        print(core.connect_devices(m), pc.process_count(), pc.process_index())
        print([d.id for d in pc.local_devices()], len(pc.devices()))
        print(pc.jit(lambda x: x + 1)(np.float32(1)))
        m.leave()
    """)
    assert statuses == [0, 0], outputs
    assert "4 2 1" in outputs[1] and "[2048, 2049] 4" in outputs[1] and "2.0" in outputs[1]


GLOBAL = """
    from primax_core.extend.runtime import Tiling
    from primax_core._runtime.tiled_sharding import TiledSharding
    def global_sum():
        rows = TiledSharding(pc.devices(), Tiling.along_mesh((n,), [(0,), ()]))
        x = pc.device_put(np.arange(6.0, dtype=np.float32).reshape(n, 6 // n), rows)
        return pc.jit(lambda v: pc.lax.reduce_sum(v, (0, 1)))(x)
"""


def test_arrays_of_all_processes_and_what_begins():
    outputs, statuses = together(
        textwrap.dedent(GLOBAL)
        + textwrap.dedent("""
        m = member()
        core.join(m, host="127.0.0.1")
        begun = []
        core.watch_runs(begun.append)
        print(float(global_sum()), float(pc.jit(lambda x: x * 2)(np.float32(4))))
        print(begun)
        m.barrier("end", 10)
        m.leave()
    """)
    )
    assert statuses == [0, 0], outputs
    for output in outputs:
        assert "15.0 8.0" in output and "['<lambda>']" in output


def test_arrays_and_devices_of_a_left_generation():
    outputs, statuses = together(
        """
        f = pc.jit(lambda x: x * 2)
        for number in range(2):
            m = member(number)
            core.join(m, host="127.0.0.1")
            core.connect_devices(m)
            if number:
                print(x.shape, x.dtype, x.is_deleted())
                for what in (
                    lambda: np.asarray(x), lambda: repr(x), lambda: x + 1, lambda: f(x),
                    lambda: pc.device_put(x), lambda: x.sharding, lambda: x.block_until_ready(),
                    lambda: pc.jit(lambda y: y + x)(np.float32(1)), lambda: float(x),
                    lambda: pc.device_put(np.ones(2), device),
                ):
                    print(attempt(what))
                print("now", f(np.float32(3)))
            x = pc.device_put(np.float32(1))
            f(x)
            device = pc.local_devices()[0]
            m.leave()
    """,
        generations=2,
    )
    assert statuses == [0, 0], outputs
    for output in outputs:
        assert "() float32 True" in output and "now 6.0" in output
        errors = re.findall(r"^LeftGenerationError: (.*)$", output, re.MULTILINE)
        assert len(errors) == 10
        assert all(
            e.startswith("the array of type f32[] belongs to a generation") for e in errors[:9]
        )
        assert re.match(r"cpu:\d+ belongs to a generation", errors[9])


@pytest.mark.parametrize("mode", ["before the client", "before the collective", "freeze"])
def test_collectives_can_be_ended(mode):
    """Without it the others would wait for minutes, or without end."""
    outputs, statuses = together(
        """
        m = member()
        core.join(m, host="127.0.0.1")
        def die():
            os.kill(os.getpid(), signal.SIGKILL)
        if rank == 1 and mode == "before the client":
            die()
        def end():
            time.sleep(1)
            core.abort_collectives(m)
        thread = threading.Thread(target=end)
        if mode != "freeze":
            thread.start()
        began = time.monotonic()
        if mode == "freeze":
            core.connect_devices(m)
            thread.start()
            if rank == 1:
                threading.Thread(target=lambda: (time.sleep(5), die())).start()
                time.sleep(30)
        elif rank == 1:
            pc.devices()
            die()
        print(attempt(lambda: core.connect_devices(m)))
        print("after", time.monotonic() - began)
        thread.join()
        m.leave()
    """,
        mode=mode,
        n=3,
    )
    assert statuses == [0, -signal.SIGKILL, 0], outputs
    for output in (outputs[0], outputs[2]):
        assert "Error" in output
        assert float(re.search(r"after (.*)", output)[1]) < 4


def test_clients_of_left_generations_are_freed():
    outputs, statuses = together(
        """
        import weakref
        clients = []
        for number in range(4):
            m = member(number)
            core.join(m, host="127.0.0.1")
            core.connect_devices(m)
            pc.jit(lambda x: x + number)(np.ones(3))
            clients.append(weakref.ref(pc.devices()[0].client))
            m.leave()
        core.forget()
        print("alive", sum(c() is not None for c in clients))
    """,
        generations=4,
    )
    assert statuses == [0, 0], outputs
    for output in outputs:
        assert int(re.search(r"alive (\d)", output)[1]) <= 2


def test_survivors_do_not_compile_again():
    outputs, statuses = together(
        textwrap.dedent(GLOBAL)
        + textwrap.dedent("""
        from primax_core._lower import compile as compilation
        compiled = []
        original = compilation._compile_or_fetch
        def counted(lowered, *args):
            compiled.append(lowered.name)
            return original(lowered, *args)
        compilation._compile_or_fetch = counted
        for number in range(3):
            m = member(number)
            core.join(m, host="127.0.0.1")
            core.connect_devices(m)
            print(float(global_sum()), float(pc.jit(lambda x: x * 3)(np.float32(2))), len(compiled))
            m.leave()
    """),
        generations=3,
    )
    assert statuses == [0, 0], outputs
    for output in outputs:
        numbers = re.findall(r"15.0 6.0 (\d+)", output)
        assert len(numbers) == 3 and len(set(numbers)) == 1 and numbers[0] != "0", output


def test_bad_arguments():
    from primax_core.extend import processes as core

    with pytest.raises(ValueError, match="number of processes must be at least 1, got 0"):
        core.Service("127.0.0.1:1", 0)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(RuntimeError, match=f"cannot listen on 127.0.0.1:{port}: .* in use"):
            core.Service(f"127.0.0.1:{port}", 1)
    for address in (":1234", "127.0.0.1", "127.0.0.1:x", "127.0.0.1:0"):
        with pytest.raises(ValueError, match="is no address to listen on: write host:port"):
            core.Service(address, 1)
    with pytest.raises(ValueError, match="must be from 0 to 1, got 2"):
        core.Member("127.0.0.1:1", 2, 2)
