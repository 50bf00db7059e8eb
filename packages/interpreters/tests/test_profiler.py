"""Profiles."""

from __future__ import annotations

import gzip
import json
import os
import socket
import subprocess
import sys
import threading
import urllib.request

import numpy as np
import pytest

import primax_core as px
from primax_core import lax
from primax_interpreters import profiler
from primax_interpreters._profiler import perfetto

X = np.ones((8, 8), np.float32)


@px.jit
def work(x):
    with px.named_scope("inner_scope"):
        y = lax.sin(x)
    return lax.dot(y, y)


def events(data):
    return [e for plane in data.planes for line in plane.lines for e in line.events]


def options(**fields):
    options = profiler.ProfileOptions()
    options.python_tracer_level = 0
    for name, value in fields.items():
        setattr(options, name, value)
    return options


@pytest.fixture(scope="module")
def taken(tmp_path_factory):
    """A folder with a profile of some work, and the profile."""
    folder = tmp_path_factory.mktemp("profile")
    work(X)
    with profiler.trace(folder, create_perfetto_trace=True, profiler_options=options()) as session:
        with profiler.StepTraceAnnotation("train_step", step_num=3):
            with profiler.TraceAnnotation("load_batch", index=7):
                work(X).block_until_ready()
            annotated(2)
    return folder, session


@profiler.annotate_function
def annotated(x):
    """Doubles."""
    return 2 * x


def test_annotations_and_operations_are_in_the_profile(taken):
    _, session = taken
    by_name = {e.name: dict(e.stats) for e in events(session.profile_data)}
    assert by_name["load_batch"]["index"] == 7
    assert by_name["train_step"]["step_num"] == 3
    assert "annotated" in by_name
    modules = {stats.get("hlo_module") for stats in by_name.values()}
    assert "jit_work" in modules


def test_functions_and_scopes_are_in_the_profile(taken):
    serialized = taken[1].profile_data._serialized
    assert b"jit_work" in serialized and b"inner_scope" in serialized


def test_the_files(taken):
    folder, session = taken
    (run,) = (folder / "plugins" / "profile").iterdir()
    host = socket.gethostname()
    assert {f.name for f in run.iterdir()} == {
        f"{host}.xplane.pb", f"{host}.trace.json.gz", "perfetto_trace.json.gz",
    }  # fmt: skip
    again = profiler.ProfileData.from_file(run / f"{host}.xplane.pb")
    assert len(events(again)) == len(events(session.profile_data))
    trace = json.loads(gzip.decompress((run / "perfetto_trace.json.gz").read_bytes()))
    step = next(e for e in trace["traceEvents"] if e["name"] == "train_step")
    assert step["ph"] == "X" and step["dur"] > 0 and step["args"] == {"step_num": "3"}
    threads = [e for e in trace["traceEvents"] if e["name"] == "thread_name"]
    assert {(e["pid"], e["tid"]) for e in trace["traceEvents"] if e["ph"] == "X"} <= {
        (e["pid"], e["tid"]) for e in threads
    }


def test_sessions_end_and_can_be_exported(taken, tmp_path):
    _, session = taken
    assert not session.is_running
    profiler.export_profile_data(session, tmp_path, session_id="mine")
    session.export_profile_data(tmp_path, session_id="other")
    assert sorted(p.name for p in (tmp_path / "plugins" / "profile").iterdir()) == ["mine", "other"]


def test_a_profile_in_memory():
    session = profiler.start_trace(None, profiler_options=options())
    assert session.is_running and session.profile_data is None
    data = profiler.stop_trace()
    assert data is session.profile_data
    assert data.find_plane_with_name("/host:CPU") is not None
    assert data.find_plane_with_name("/none") is None


def test_one_session_at_a_time(tmp_path):
    with profiler.ProfileSession(profiler_options=options()) as session:
        for start in (lambda: profiler.start_trace(tmp_path), profiler.ProfileSession().start):
            with pytest.raises(RuntimeError, match="Only one profile may be run at a time"):
                start()
    with pytest.raises(RuntimeError, match="not running"):
        session.stop()
    with pytest.raises(RuntimeError, match="No profile started"):
        profiler.stop_trace()


def test_an_error_in_the_body_ends_the_session():
    with pytest.raises(KeyError), profiler.trace(profiler_options=options()):
        raise KeyError("mine")
    with profiler.trace(profiler_options=options()):
        pass


def test_folders_that_cannot_be_written(tmp_path):
    file = tmp_path / "file"
    file.write_text("")
    for folder in (file, file / "inside"):
        with pytest.raises(OSError, match="profiles cannot be written to"):
            profiler.start_trace(folder)
    with pytest.raises(RuntimeError, match="No profile started"):
        profiler.stop_trace()


def test_wrong_arguments(tmp_path):
    with pytest.raises(TypeError, match="ProfileOptions"):
        profiler.start_trace(tmp_path, profiler_options={"level": 1})
    with pytest.raises(TypeError, match="Expected ProfileData or ProfileSession, got bytes"):
        profiler.export_profile_data(b"", tmp_path)
    with pytest.raises(RuntimeError, match="stop it first"):
        profiler.export_profile_data(profiler.ProfileSession(), tmp_path)
    with pytest.raises(ValueError, match="are not a profile"):
        profiler.ProfileData.from_serialized_xspace(b"\xff" * 20)
    with pytest.raises(TypeError, match="bytes of a profile"):
        profiler.ProfileData.from_serialized_xspace("text")
    with pytest.raises(TypeError, match="function to annotate"):
        profiler.annotate_function(3)


def test_annotated_functions_keep_their_metadata():
    assert annotated(4) == 8
    assert annotated.__doc__ == "Doubles." and annotated.__name__ == "annotated"
    assert profiler.annotate_function(lambda: 5, name="five", size=1)() == 5


def free_port():
    with socket.socket() as s:
        s.bind(("", 0))
        return s.getsockname()[1]


def test_the_server():
    with pytest.raises(ValueError, match="No active profiler server"):
        profiler.stop_server()
    with pytest.raises(ValueError, match="from 0 to 65535"):
        profiler.start_server(-5)
    port = free_port()
    server = profiler.start_server(port)
    try:
        with socket.create_connection(("localhost", port), timeout=5):
            pass
        with pytest.raises(ValueError, match="Only one profiler server"):
            profiler.start_server(free_port())
    finally:
        del server
        profiler.stop_server()


def test_a_port_that_is_taken():
    with socket.socket(socket.AF_INET6 if socket.has_ipv6 else socket.AF_INET) as s:
        s.bind(("", 0))
        s.listen()
        with pytest.raises(OSError, match="cannot use port"):
            profiler.start_server(s.getsockname()[1])
    with pytest.raises(ValueError, match="No active profiler server"):
        profiler.stop_server()


@pytest.mark.parametrize("pid", [0, -1, os.getpid()], ids=["none", "negative", "own"])
def test_processes_without_profiler(pid):
    with pytest.raises(ValueError, match="needs another process"):
        profiler.register_subprocess(pid, 9999)


def test_profiles_of_memory(tmp_path):
    held = px.device_put(np.ones(1000, np.float32))
    profile = gzip.decompress(profiler.device_memory_profile())
    assert b"cpu" in profile.lower()
    profiler.save_device_memory_profile(tmp_path / "memory.prof", backend="cpu")
    assert gzip.decompress((tmp_path / "memory.prof").read_bytes())
    with pytest.raises(FileNotFoundError):
        profiler.save_device_memory_profile(tmp_path / "no" / "memory.prof")
    with pytest.raises(RuntimeError, match="Unknown backend"):
        profiler.device_memory_profile("quantum")
    del held


def test_perfetto_fetches_the_trace_once(tmp_path, capsys):
    path, port = tmp_path / "perfetto_trace.json.gz", free_port()
    path.write_bytes(b"content")
    server = threading.Thread(target=perfetto.serve_once, args=(str(path), port))
    server.start()
    base = f"http://127.0.0.1:{port}/"
    for _ in range(100):
        try:
            with urllib.request.urlopen(base + path.name, timeout=5) as answer:
                assert answer.read() == b"content"
                assert answer.headers["Access-Control-Allow-Origin"] == "https://ui.perfetto.dev"
            break
        except ConnectionError:
            threading.Event().wait(0.02)
        except OSError as e:
            if "refused" not in str(e):
                raise
            threading.Event().wait(0.02)
    server.join(10)
    assert not server.is_alive()
    assert f"url={base}{path.name}" in capsys.readouterr().out


def test_a_process_can_exit_while_it_records(tmp_path):
    code = (
        "import sys, numpy as np, primax_core as px\n"
        "from primax_core import lax\n"
        "from primax_interpreters import profiler\n"
        "heavy = px.jit(lambda x: lax.fori_loop(0, 200, lambda i, c: lax.dot(c, c) * 1e-3, x))\n"
        "profiler.start_trace(sys.argv[1])\n"
        "y = heavy(np.ones((200, 200), np.float32))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
