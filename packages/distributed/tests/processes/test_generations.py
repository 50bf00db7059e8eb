"""Training goes on after deaths: the local launcher and ``generations``."""

from __future__ import annotations

import os
import re
import signal
import sys

import pytest
from several import launch, together

from primax_distributed.run import Launcher

TRAIN = """
folder = sys.argv[1]
path = os.path.join(folder, "checkpoint")

def once(name):
    # True for the first process that asks, in any generation.
    try:
        os.close(os.open(os.path.join(folder, name), os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True

def restored():
    try:
        with open(path) as f:
            return eval(f.read())
    except FileNotFoundError:
        return 0, 0

def save(step, total):
    with open(path + "~", "w") as f:
        f.write(repr((step, total)))
    os.replace(path + "~", path)

STEPS = 60
for generation in processes.generations():
    with generation:
        print(f"rank {generation.rank} is {os.getpid()} in {generation.number}", flush=True)
        step, total = restored()
        while step < STEPS:
            disturb(generation, step)
            total += collective() * step
            step += 1
            if generation.rank == 0:
                save(step, total)
print(f"total {total}", flush=True)
"""
TOTAL = sum(range(60))


def trained(disturb, folder, n=3, options=()):
    code = f"def disturb(generation, step):\n{disturb}\n" + TRAIN
    output, status = launch(code, str(folder), n, options=options)
    assert status == 0, output
    assert re.findall(r"total (\d+)", output) == [str(n * TOTAL)] * n, output
    assert "Check failure" not in output, output
    return output


def pids(output, rank):
    return [int(pid) for pid in re.findall(rf"rank {rank} is (\d+) in", output)]


def test_undisturbed(tmp_path):
    output = trained("    pass", tmp_path, n=2)
    assert len(pids(output, 0)) == 1


DEATHS = {
    "kill": "os.kill(os.getpid(), signal.SIGKILL)",
    "freeze": "os.kill(os.getpid(), signal.SIGSTOP)",
    "exception": "raise KeyError('my bug')",
}


@pytest.mark.parametrize("how", DEATHS)
def test_a_rank_dies(how, tmp_path):
    output = trained(
        f"    if step == 20 and generation.rank == 1 and once('died'): {DEATHS[how]}",
        tmp_path,
        options=["--freeze-timeout", "3"],
    )
    survivors = [set(pids(output, rank)) for rank in (0, 2)]
    assert all(len(s) == 1 for s in survivors), output
    assert len(set(pids(output, 1))) == 2
    assert "rank 1 " in output and "it is restarted" in output


def test_rank_0_dies(tmp_path):
    output = trained(
        "    if step == 20 and generation.rank == 0 and once('died'): os._exit(1)", tmp_path
    )
    assert len(set(pids(output, 1))) == len(set(pids(output, 2))) == 1
    assert "rank 0 ended with status 1; it is restarted" in output


def test_a_survivor_that_does_not_leave_is_killed(tmp_path):
    output = trained(
        """
    if step == 20 and generation.rank == 1 and once('died'): os._exit(1)
    if step == 20 and generation.rank == 2 and once('slept'): time.sleep(60)
    """,
        tmp_path,
        options=["--grace", "2"],
    )
    assert "rank 2 is killed: it did not leave its generation within 2 s" in output
    assert len(set(pids(output, 0))) == 1


def test_a_death_after_others_have_finished_repeats_the_end(tmp_path):
    code = "def disturb(generation, step): pass\n" + TRAIN.replace(
        "                save(step, total)\n",
        "                save(step, total)\n"
        "        if generation.rank == 1 and once('late'): time.sleep(1); os._exit(1)\n",
    )
    output, status = launch(code, str(tmp_path), 2)
    assert status == 0, output
    assert output.count(f"total {2 * TOTAL}") == 2


def test_many_generations_use_bounded_resources(tmp_path):
    generations = int(os.environ.get("PRIMAX_TEST_GENERATIONS", "5"))
    output, status = launch(
        f"""
for generation in processes.generations():
    with generation:
        np.asarray(pc.jit(lambda x: x * 2)(np.ones(1000, np.float32)))
        collective()
        if generation.rank == 0:
            tasks, files = (len(os.listdir(f"/proc/self/{{x}}")) for x in ("task", "fd"))
            pages = int(open("/proc/self/statm").read().split()[1])
            print(f"used {{generation.number}} {{tasks}} {{files}} {{pages // 256}}", flush=True)
        if generation.number < {generations} and generation.rank == 1:
            os._exit(1)
        collective()
""",
        str(tmp_path),
        options=["--max-restarts", "1000"],
        timeout=120 + 4 * generations,
    )
    assert status == 0, output
    used = [list(map(int, x)) for x in re.findall(r"used (\d+) (\d+) (\d+) (\d+)", output)]
    assert used[-1][0] == generations
    first, last = used[2], used[-1]
    assert last[1] <= first[1] + 14, used  # threads of one more client
    assert last[2] <= first[2] + 6, used  # descriptors
    assert last[3] <= first[3] + 5 * generations, used  # MB


def test_a_late_report_of_an_ended_process_ends_nobody(capfd):
    launcher = Launcher([sys.executable, "-c", "import time; time.sleep(60)"], 1)
    try:
        launcher.start(0)
        first = launcher.processes[0]
        first.kill()
        first.wait()
        assert launcher._step(set()) is None
        second = launcher.processes[0]
        assert second is not first
        launcher._note_lost(0, first.pid, "its process ended")
        assert launcher._step(set()) is None
        assert second.poll() is None and launcher.processes[0] is second
        launcher._note_lost(0, second.pid, "it has not answered for 8 s")
        assert launcher._step(set()) is None
        assert second.poll() == -signal.SIGKILL and launcher.processes[0] is not second
    finally:
        launcher._end_all()
    assert "rank 0 is killed: it has not answered for 8 s" in capfd.readouterr().err


def test_too_many_restarts(tmp_path):
    output, status = launch(
        "for g in processes.generations():\n    with g: raise KeyError('always')",
        str(tmp_path), options=["--max-restarts", "1"],
    )  # fmt: skip
    assert status == 1
    assert "ended with status 1, after 1 restarts" in output


def test_a_rank_that_never_joins(tmp_path):
    output, status = launch(
        """
if os.environ["PRIMAX_PROCESS_ID"] == "0":
    time.sleep(60)
for generation in processes.generations():
    with generation: pass
""",
        str(tmp_path), options=["--join-timeout", "3"],
    )  # fmt: skip
    assert status == 1
    assert "1 of 2 processes did not come within 3 s: rank 0" in output


def test_one_generation_without_a_launcher():
    outputs, statuses = together("""
processes.initialize(f'127.0.0.1:{port}', n, rank)
def train():
    for generation in processes.generations():
        with generation:
            print(generation)
            collective()
            if rank == 1:
                os._exit(1)
            collective()
print(attempt(train))
""")
    assert statuses == [0, 1], outputs
    assert "Generation(1, rank 0 of 2, inside)" in outputs[0]
    assert "ProcessFailure: rank 1 died: its process ended" in outputs[0]


def test_the_body_is_a_with_block():
    outputs, _ = together(
        """
processes.initialize(f'127.0.0.1:{port}', n, rank)
def train():
    for generation in processes.generations():
        pass
print(attempt(train))
""",
        n=1,
    )
    assert "RuntimeError: the body of a loop over generations() is a with block" in outputs[0]


def test_usage(capsys):
    from primax_distributed.run import main

    with pytest.raises(SystemExit):
        main(["-n", "0", "x.py"])
    assert "-n must be at least 1, got 0" in capsys.readouterr().err


def test_signals_have_names():
    from primax_distributed.run import _ended, _exit_status

    assert _ended(-signal.SIGKILL) == "was ended by SIGKILL" and _exit_status(-9) == 137
    assert _ended(3) == "ended with status 3" and _exit_status(3) == 3


def test_two_loops_are_two_generations(tmp_path):
    output, status = launch(
        """
for _ in range(2):
    for generation in processes.generations():
        with generation:
            collective()
            print(f"number {generation.number}", flush=True)
""",
        str(tmp_path),
    )
    assert status == 0, output
    assert sorted(re.findall(r"number (\d)", output)) == ["1", "1", "2", "2"]
