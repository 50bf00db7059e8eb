"""``initialize``: real processes, and every wrong input is a named error."""

from __future__ import annotations

import inspect
import signal

import pytest
from several import environment, together

from primax_core import devices
from primax_distributed import processes

JOIN = "processes.initialize(f'127.0.0.1:{port}', n, rank, freeze_timeout_seconds=3)\n"


def test_signature_begins_as_the_references():
    names = list(inspect.signature(processes.initialize).parameters)
    assert names[:9] == [
        "coordinator_address", "num_processes", "process_id", "local_device_ids",
        "cluster_detection_method", "initialization_timeout", "heartbeat_timeout_seconds",
        "shutdown_timeout_seconds", "coordinator_bind_address",
    ]  # fmt: skip


def test_join_compute_and_leave():
    outputs, statuses = together(
        JOIN
        + """
from primax_core.extend.runtime import started_clients
print(pc.process_index(), pc.process_count(), len(pc.devices()), processes.is_initialized())
print(collective(), attempt(lambda: processes.initialize(f'127.0.0.1:{port}', n, rank)))
processes.shutdown()
processes.shutdown()
print(processes.is_initialized(), started_clients(), pc.process_count())
"""
    )
    assert statuses == [0, 0], outputs
    for rank, output in enumerate(outputs):
        assert f"{rank} 2 2 True" in output
        assert "2 RuntimeError: distributed.initialize should only be called once" in output
        assert "False {} 1" in output


def test_found_by_the_environment():
    variables = [{"RANK": str(r), "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1"} for r in range(2)]
    from several import free_port

    port = str(free_port() - 1)
    for v in variables:
        v["MASTER_PORT"] = port
    outputs, statuses = together(
        "processes.initialize(); print(pc.process_index(), pc.process_count())",
        variables=variables,
    )
    assert statuses == [0, 0], outputs
    assert "0 2" in outputs[0] and "1 2" in outputs[1]


DEATHS = {
    "os.kill(os.getpid(), signal.SIGKILL)": ("its process ended", -signal.SIGKILL),
    "os.kill(os.getpid(), signal.SIGSTOP)": ("it has not answered for 3 s", -signal.SIGKILL),
    "raise KeyError('my bug')": ("it raised KeyError: 'my bug'", 1),
}


@pytest.mark.parametrize("how", DEATHS)
def test_a_death_is_named_by_the_others(how):
    outputs, statuses = together(
        JOIN
        + f"""
collective()
if rank == 1:
    {how}
began = time.monotonic()
print(attempt(collective), time.monotonic() - began)
""",
        n=3,
        frozen=[1] if "STOP" in how else [],
    )
    why, status = DEATHS[how]
    assert statuses == [0, status, 0], outputs
    for output in (outputs[0], outputs[2]):
        assert f"ProcessFailure: rank 1 died: {why}" in output
        assert float(output.strip().rpartition(" ")[2]) < 8


def test_a_rank_that_leaves_early_is_named():
    outputs, statuses = together(
        JOIN
        + """
collective()
if rank == 1:
    sys.exit()
print(attempt(collective))
"""
    )
    assert statuses == [0, 0], outputs
    assert "ProcessFailure: rank 1 is gone: it has left" in outputs[0]


@pytest.mark.parametrize("how", ["os._exit(3)", "os.kill(os.getpid(), signal.SIGSTOP)"])
def test_the_death_of_the_coordinator_ends_the_others(how):
    """jaxlib may abort them; they say before which rank it was."""
    outputs, statuses = together(
        JOIN
        + f"""
collective()
if rank == 0:
    {how}
print(attempt(collective))
""",
        frozen=[0] if "STOP" in how else [],
    )
    assert statuses[1] in (0, -signal.SIGABRT), outputs
    assert "rank 0 died: its coordinator at 127.0.0.1:" in outputs[1]


def test_a_late_rank_is_named_with_its_line():
    outputs, statuses = together("""
processes.initialize(f'127.0.0.1:{port}', n, rank, late_after_seconds=1.5)
def next_batch():
    time.sleep(5)
for i in range(3):
    collective()
if rank == 1:
    next_batch()
collective()
""")
    assert statuses == [0, 0], outputs
    assert "rank 0 waits in program 4 (train_step) for " in outputs[0]
    assert "rank 1 has begun only 3; it is at <string>:" in outputs[0]
    assert "in next_batch" in outputs[0] and "waits" not in outputs[1]


REFUSED = {
    "another number of processes": (
        "n + (rank == 1)", "rank", "says that there are 3 processes, but the coordinator expects 2",
    ),
    "the same rank twice": ("3", "min(rank, 1)", "cannot have the same number: give each process"),
    "a rank that does not come": ("3", "rank", "did not come within 3 s: rank 2"),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_processes_that_cannot_join_say_why(what):
    number, own, text = REFUSED[what]
    count = 3 if "twice" in what else 2
    outputs, statuses = together(
        f"""
print(attempt(lambda: processes.initialize(
    f'127.0.0.1:{{port}}', {number}, {own}, initialization_timeout=3)))
print(processes.is_initialized())
""",
        n=count,
    )
    assert statuses == [0] * count, outputs
    assert any(text in output for output in outputs), outputs
    assert all("JoinError: rank " in o and "False" in o for o in outputs), outputs


def alone(code):
    """Output of one process."""
    outputs, statuses = together(code, n=1)
    assert statuses == [0], outputs
    return outputs[0]


def test_no_coordinator():
    text = alone("""
print(attempt(lambda: processes.initialize(f'127.0.0.1:{port}', 2, 1, initialization_timeout=1)))
""")
    assert "JoinError: no coordinator answers at 127.0.0.1:" in text
    assert "within 1 s. Rank 0 starts it" in text


def test_a_port_that_is_taken():
    text = alone("""
import socket
s = socket.create_server(("127.0.0.1", port))
print(attempt(lambda: processes.initialize(f'127.0.0.1:{port}', 2, 0, initialization_timeout=1)))
def answer():
    c = s.accept()[0]
    c.sendall(b"HTTP/1.1 400 Bad Request\\\\r\\\\n\\\\r\\\\n")
threading.Thread(target=answer).start()
print(attempt(lambda: processes.initialize(f'127.0.0.1:{port}', 2, 1, initialization_timeout=1)))
""")
    assert "JoinError: the coordinator cannot listen on port" in text
    assert "is no coordinator of this library" in text


def test_devices_in_use():
    text = alone("""
pc.devices()
print(attempt(lambda: processes.initialize(f'127.0.0.1:{port}', 1, 0)))
""")
    assert "distributed.initialize() must be called before the first use of a device" in text


def test_again_after_shutdown():
    text = alone("""
for i in range(2):
    processes.initialize(f'127.0.0.1:{port}', 1, 0)
    print(collective())
    processes.shutdown()
""")
    assert text.count("1\n") == 2


@pytest.mark.parametrize("arguments, text", [
    ("'127.0.0.1:1', 2", "coordinator_address and num_processes given, but not process_id"),
    ("'127.0.0.1:1', 2, 2", "process_id must be from 0 to num_processes - 1 = 1, got 2"),
    ("'127.0.0.1:1', 2, -1", "process_id must be from 0 to num_processes - 1 = 1, got -1"),
    ("'127.0.0.1:1', 0, 0", "num_processes must be at least 1, got 0"),
    ("'127.0.0.1', 2, 0", "'127.0.0.1' is no address of a coordinator: write host:port"),
    ("'h:99999', 2, 0", "'h:99999' is no address of a coordinator"),
    ("cluster_detection_method='x'", "cluster_detection_method='x' is not supported"),
])  # fmt: skip
def test_wrong_arguments(arguments, text, monkeypatch):
    """They are named before devices that are in use."""
    devices()
    for name in set(environment()) & {"RANK", "WORLD_SIZE"}:
        monkeypatch.delenv(name)
    with pytest.raises(ValueError) as caught:
        eval(f"processes.initialize({arguments})", {"processes": processes})
    assert text in str(caught.value)
    assert not processes.is_initialized()
