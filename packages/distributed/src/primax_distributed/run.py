"""Local launcher: several processes on this machine, for tests and laptops.

    python -m primax_distributed.run -n 4 train.py --epochs 3

It is no cluster manager. It restarts processes that die or freeze, and the others go on with them
in the next generation: see ``primax_distributed.processes.generations``.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from typing import Final

from .processes._coordinator import Coordinator

_STEP: Final = 0.05
_FAREWELL: Final = 5.0


class Launcher:
    """Processes of one command on this machine.

    Args:
      command: the program and its arguments.
      num_processes: how many to run.
      max_restarts: restarts of all processes together before it gives up.
      grace: seconds for survivors to leave a generation that has ended.
      freeze: seconds of silence after which a process is killed.
      late: seconds after which a process that has not begun a program is reported.
      patience: seconds for all processes to come.
      devices: CPU devices of each process; by default the option ``num_cpu_devices``.
    """

    def __init__(
        self, command: Sequence[str], num_processes: int, *, max_restarts: int = 10,
        grace: float = 10, freeze: float = 8, late: float = 30, patience: float = 300,
        devices: int | None = None,
    ):  # fmt: skip
        self.command: list[str] = list(command)
        self.num_processes = num_processes
        self.devices = devices
        self.max_restarts = max_restarts
        self.restarts: int = 0
        self._lock = threading.Lock()
        self._lost: dict[int, tuple[int, str]] = {}
        self._ended: set[int] = set()
        self._stopped_by = 0
        self.processes: dict[int, subprocess.Popen[bytes]] = {}
        self.coordinator: Coordinator = Coordinator(
            ("127.0.0.1", 0), "127.0.0.1", num_processes, restarts=True, grace=grace,
            freeze=freeze, late=late, patience=patience, on_lost=self._note_lost,
        )  # fmt: skip

    def _note_lost(self, rank: int, pid: int, why: str) -> None:
        with self._lock:  # in the coordinator's thread
            self._lost[rank] = pid, why

    def start(self, rank: int) -> None:
        """Start the process of a rank."""
        environment = {
            **os.environ,
            "PRIMAX_COORDINATOR_ADDRESS": self.coordinator.address,
            "PRIMAX_NUM_PROCESSES": str(self.num_processes),
            "PRIMAX_PROCESS_ID": str(rank),
            "PRIMAX_LOCAL_PROCESS_ID": str(rank),
            "PRIMAX_SUPERVISED": "1",
        }
        if self.devices is not None:
            environment["PRIMAX_NUM_CPU_DEVICES"] = str(self.devices)
        process = self.processes[rank] = subprocess.Popen(self.command, env=environment)
        self._ended.discard(process.pid)

    def run(self) -> int:
        """Run until all processes have ended well, or one has died too often.

        Returns:
          The exit status: 0, or that of the process that made the launcher give up.
        """
        try:
            for rank in range(self.num_processes):
                self.start(rank)
            finished: set[int] = set()
            while len(finished) < self.num_processes:
                if self._stopped_by:
                    return 128 + self._stopped_by
                if self.coordinator.failure is not None:
                    _say(self.coordinator.failure)
                    return 1
                status = self._step(finished)
                if status is not None:
                    return status
                time.sleep(_STEP)
            return 0
        finally:
            self._end_all()

    def _step(self, finished: set[int]) -> int | None:
        with self._lock:
            lost, self._lost = self._lost, {}
        for rank, (pid, why) in lost.items():
            if pid in self._ended:  # on a busy machine this comes after the restart
                continue
            process = self.processes[rank]
            if process.poll() is None and not _ends_soon(process, why):
                _say(f"rank {rank} is killed: {why}")
                process.kill()
                process.wait()
        for rank, process in list(self.processes.items()):
            status = process.poll()
            if status is None or rank in finished:
                continue
            self._ended.add(process.pid)
            if status == 0:
                finished.add(rank)
                continue
            self.restarts += 1
            if finished:
                _say(f"rank {rank} {_ended(status)} after others had finished")
                return _exit_status(status)
            if self.restarts > self.max_restarts:
                _say(f"rank {rank} {_ended(status)}, after {self.max_restarts} restarts")
                return _exit_status(status)
            _say(f"rank {rank} {_ended(status)}; it is restarted")
            self.start(rank)
        return None

    def stop(self, number: int) -> None:
        """End all processes, after a signal."""
        self._stopped_by = number

    def _end_all(self) -> None:
        running = [p for p in self.processes.values() if p.poll() is None]
        for process in running:
            process.terminate()
        deadline = time.monotonic() + _FAREWELL
        for process in running:
            try:
                process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self.coordinator.close()


def _ends_soon(process: subprocess.Popen[bytes], why: str) -> bool:
    """Return True if a process whose connection closed ends by itself."""
    try:
        # After an exception the interpreter still exits, which takes its time on a busy machine.
        process.wait(10 if why.startswith("it raised") else 1)
    except subprocess.TimeoutExpired:
        return False
    return True


def _ended(status: int) -> str:
    if status >= 0:
        return f"ended with status {status}"
    try:
        return f"was ended by {signal.Signals(-status).name}"
    except ValueError:
        return f"was ended by signal {-status}"


def _exit_status(status: int) -> int:
    return status if status > 0 else 128 - status


def _say(text: str) -> None:
    print(f"primax_distributed.run: {text}", file=sys.stderr, flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m primax_distributed.run",
        description="Run a script in several processes on this machine, which compute together.",
    )
    parser.add_argument("-n", "--num-processes", type=int, required=True, metavar="N")
    parser.add_argument("--devices", type=int, help="CPU devices of each process")
    parser.add_argument("--max-restarts", type=int, default=10, help="of all processes together")
    parser.add_argument("--grace", type=float, default=10, help="seconds to leave a generation")
    parser.add_argument("--freeze-timeout", type=float, default=8, help="seconds of silence")
    parser.add_argument("--late-after", type=float, default=30, help="seconds until a report")
    parser.add_argument("--join-timeout", type=float, default=300, help="seconds for all to come")
    parser.add_argument("-m", "--module", action="store_true", help="the script is a module name")
    parser.add_argument("script")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    options = parser.parse_args(arguments)
    if options.num_processes < 1:
        parser.error(f"-n must be at least 1, got {options.num_processes}")
    command = [
        sys.executable,
        *(["-m"] if options.module else []),
        options.script,
        *options.arguments,
    ]
    launcher = Launcher(
        command, options.num_processes, max_restarts=options.max_restarts, grace=options.grace,
        freeze=options.freeze_timeout, late=options.late_after, patience=options.join_timeout,
        devices=options.devices,
    )  # fmt: skip
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda n, frame: launcher.stop(n))
    return launcher.run()


if __name__ == "__main__":
    sys.exit(main())
