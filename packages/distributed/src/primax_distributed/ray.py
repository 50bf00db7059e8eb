"""Processes as Ray actors: Ray places, starts, watches and restarts them.

    pip install 'primax-distributed[ray]'

This module only tells each process its rank. The driver runs the coordinator, so no worker's death
takes it along; survivors keep their processes, and join the next generation with the rank that Ray
has restarted.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

import ray  # type: ignore[import-not-found]
from ray.exceptions import (  # type: ignore[import-not-found]
    ActorUnavailableError,
    RayActorError,
    RayTaskError,
)

from .processes._coordinator import Coordinator
from .processes._errors import failure_text

_STEP: Final = 0.1


class RanksFailed(RuntimeError):
    """Ranks died more often than they may; ``ranks`` are those that died last."""

    def __init__(self, message: str, ranks: tuple[int, ...] = ()):
        super().__init__(message)
        self.ranks = ranks


class _Rank:
    """The process of one rank."""

    def __init__(self, environment: Mapping[str, str]):
        os.environ.update(environment)

    def pid(self) -> int:
        return os.getpid()

    def run(self, fun: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        from .processes._generations import generations

        result = None
        for generation in generations():
            with generation:
                result = fun(generation, *args)
        return result


class Ranks:
    """Ranks that compute together, each a Ray actor. A context manager.

    Args:
      num_processes: number of ranks.
      environment: variables that are set in each process.
      max_restarts: deaths of all ranks together before :meth:`run` gives up.
      freeze: seconds of silence after which a rank is killed.
      grace: seconds for survivors to leave a generation that has ended.
      late: seconds after which a rank that has not begun a program is reported.
      patience: seconds for all ranks to come.
      actor: options of the actors, such as ``num_cpus``, ``num_gpus``, ``resources`` or
        ``scheduling_strategy``.

    ::

        def train(generation, steps):
            state = restore_newest_checkpoint()
            ...


        with Ranks(4, num_cpus=2) as ranks:
            results = ranks.run(train, 1000)
    """

    def __init__(
        self, num_processes: int, *, environment: Mapping[str, str] | None = None,
        max_restarts: int = 10, freeze: float = 8, grace: float = 10, late: float = 30,
        patience: float = 300, **actor: Any,
    ):  # fmt: skip
        if not ray.is_initialized():
            ray.init()
        self.num_processes = num_processes
        self.max_restarts = max_restarts
        self.restarts: int = 0  # of all ranks together
        self._lock = threading.Lock()
        self._lost: dict[int, str] = {}
        self.coordinator: Coordinator = Coordinator(
            ("", 0), ray.util.get_node_ip_address(), num_processes, restarts=True, grace=grace,
            freeze=freeze, late=late, patience=patience, on_lost=self._note_lost,
        )  # fmt: skip
        options = {"num_cpus": 1, "max_restarts": -1, "max_task_retries": 0, **actor}
        remote = ray.remote(_Rank)
        self._actors = [
            remote.options(**options).remote(self._environment(rank, environment or {}))
            for rank in range(num_processes)
        ]

    def _environment(self, rank: int, more: Mapping[str, str]) -> dict[str, str]:
        return {
            **more,
            "PRIMAX_COORDINATOR_ADDRESS": self.coordinator.address,
            "PRIMAX_NUM_PROCESSES": str(self.num_processes),
            "PRIMAX_PROCESS_ID": str(rank),
            "PRIMAX_SUPERVISED": "1",
        }

    def _note_lost(self, rank: int, pid: int, why: str) -> None:
        with self._lock:  # in the coordinator's thread
            self._lost[rank] = why
            self.restarts += 1

    def pids(self) -> list[int]:
        """The process identifiers of the ranks."""
        return [ray.get(a.pid.remote()) for a in self._actors]

    def run(self, fun: Callable[..., Any], *args: Any) -> list[Any]:
        """``fun(generation, *args)`` in all ranks; again, in the next generation, after a death.

        Returns:
          The result of each rank.

        Raises:
          RanksFailed: ranks died more than ``max_restarts`` times, or did not come.
          Exception: what ``fun`` raised in a rank.
        """
        tasks = {self._task(rank, fun, args): rank for rank in range(self.num_processes)}
        results: dict[int, Any] = {}
        while tasks:
            self._check_restarts(results)
            self._kill_lost()
            done, _ = ray.wait(list(tasks), num_returns=1, timeout=_STEP)
            for task in done:
                rank = tasks.pop(task)
                try:
                    results[rank] = ray.get(task)
                except (RayActorError, ActorUnavailableError):  # Ray restarts it
                    time.sleep(_STEP)
                    tasks[self._task(rank, fun, args)] = rank
                except RayTaskError as e:
                    raise e.as_instanceof_cause() from None
        return [results[rank] for rank in range(self.num_processes)]

    def _check_restarts(self, results: dict[int, Any]) -> None:
        if self.coordinator.failure is not None:
            raise RanksFailed(self.coordinator.failure)
        with self._lock:
            lost = dict(self._lost)
        if lost and (self.restarts > self.max_restarts or results):
            after = "others had finished" if results else f"{self.max_restarts} restarts"
            raise RanksFailed(f"{failure_text(lost)}; after {after}", tuple(sorted(lost)))

    def _task(self, rank: int, fun: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        return self._actors[rank].run.remote(fun, args)

    def _kill_lost(self) -> None:
        with self._lock:
            lost, self._lost = self._lost, {}
        for rank, why in lost.items():
            if not why.startswith("its process ended"):
                ray.kill(self._actors[rank], no_restart=False)

    def close(self) -> None:
        """End the ranks and the coordinator."""
        for actor in self._actors:
            ray.kill(actor)
        self.coordinator.close(2)

    def __enter__(self) -> Ranks:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
