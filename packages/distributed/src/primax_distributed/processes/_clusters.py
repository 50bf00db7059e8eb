"""Detection of the processes that compute together, from their launcher's environment."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ._errors import JoinError
from ._wire import free_port, joined_address

Environment = Mapping[str, str]


@dataclass(frozen=True)
class Place:
    """A process among others: what :func:`initialize` needs, and who said so."""

    address: str
    num_processes: int
    rank: int
    local_rank: int | None
    found_by: str
    supervised: bool = False
    """A launcher runs the coordinator and restarts ranks that die."""


class Incomplete(Exception):
    """Some variables of a launcher are set, and others that belong to them are not."""


def primax(env: Environment) -> Place | None:
    """``PRIMAX_COORDINATOR_ADDRESS``, ``PRIMAX_NUM_PROCESSES``, ``PRIMAX_PROCESS_ID``."""
    names = ("PRIMAX_COORDINATOR_ADDRESS", "PRIMAX_NUM_PROCESSES", "PRIMAX_PROCESS_ID")
    present = [name for name in names if env.get(name)]
    if not present or present == ["PRIMAX_NUM_PROCESSES"]:  # Kubernetes needs only this one
        return None
    _need(env, names)
    local = _optional(env, "PRIMAX_LOCAL_PROCESS_ID")
    n, rank = _number(env, names[1]), _number(env, names[2])
    supervised = env.get("PRIMAX_SUPERVISED") == "1"
    return Place(env[names[0]], n, rank, local, "PRIMAX_*", supervised)


def torchrun(env: Environment) -> Place | None:
    """The variables of torchrun, which Kubeflow and Ray Train set too.

    The store of torch, if there is one, listens at ``MASTER_PORT``; the coordinator takes the next.
    """
    names = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
    if not {"RANK", "WORLD_SIZE"} <= env.keys():
        return None
    _need(env, names)
    n, rank = _number(env, "WORLD_SIZE"), _number(env, "RANK")
    port = _number(env, "MASTER_PORT") + 1
    local = _optional(env, "LOCAL_RANK")
    return Place(joined_address(env["MASTER_ADDR"], port), n, rank, local, "RANK and MASTER_ADDR")


def open_mpi(env: Environment) -> Place | None:
    """Open MPI 4 and 5: ``OMPI_COMM_WORLD_*``."""
    if "OMPI_COMM_WORLD_RANK" not in env:
        return None
    _need(env, ("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"))
    n, rank = _number(env, "OMPI_COMM_WORLD_SIZE"), _number(env, "OMPI_COMM_WORLD_RANK")
    local = _optional(env, "OMPI_COMM_WORLD_LOCAL_RANK")
    uri = env.get("OMPI_MCA_orte_hnp_uri")
    if uri is not None:  # until 4.1: job.0;tcp://address,address:port
        match = re.search(r"//([^:,;]+)", uri)
        if match is None:
            raise Incomplete(f"OMPI_MCA_orte_hnp_uri={uri!r} names no address")
        number = int(uri.split(".")[0])
        host, job = match[1], number + (number >> 16)  # the lower bits may all be 0
    elif _optional(env, "OMPI_COMM_WORLD_LOCAL_SIZE") == n:
        host, job = "127.0.0.1", sum(map(ord, env.get("PMIX_NAMESPACE", "")))
    else:
        place = mpi4py(env)
        if place is None:
            raise Incomplete(
                "Open MPI 5 does not say where rank 0 runs: install mpi4py, by which it is asked, "
                "or give coordinator_address"
            )
        return place
    return Place(_job_address(host, job), n, rank, local, "OMPI_COMM_WORLD_*")


def mpi4py(env: Environment) -> Place | None:
    """Any MPI, by the package mpi4py. It starts MPI, so it is used only where it is named."""
    try:
        from mpi4py import MPI  # type: ignore[import-not-found]
    except ImportError:
        return None
    world: Any = MPI.COMM_WORLD
    if world.Get_size() == 1:
        return None
    address = None
    if world.Get_rank() == 0:
        address = joined_address(socket.gethostbyname(socket.gethostname()), free_port(""))
    local = world.Split_type(MPI.COMM_TYPE_SHARED).Get_rank()
    return Place(world.bcast(address), world.Get_size(), world.Get_rank(), local, "mpi4py")


def slurm(env: Environment) -> Place | None:
    """A step of Slurm with several tasks. A shell on a node of a job is none."""
    tasks = env.get("SLURM_STEP_NUM_TASKS")
    if "SLURM_PROCID" not in env or tasks is None or tasks == "1":
        return None
    _need(env, ("SLURM_JOB_ID", "SLURM_STEP_NODELIST"))
    host = first_node(env["SLURM_STEP_NODELIST"])
    # Steps of one job may run at the same time on the same node.
    job = _number(env, "SLURM_JOB_ID") + 61 * (_optional(env, "SLURM_STEP_ID") or 0)
    local = _optional(env, "SLURM_LOCALID")
    address = _job_address(host, job)
    return Place(
        address,
        _number(env, "SLURM_STEP_NUM_TASKS"),
        _number(env, "SLURM_PROCID"),
        local,
        "SLURM_*",
    )


def first_node(nodes: str) -> str:
    """The first node of a list of Slurm: ``tux[03-07,9],b1`` gives ``tux03``."""
    before, bracket, rest = nodes.partition("[")
    if not bracket or "," in before:
        return before.split(",")[0]
    numbers, _, after = rest.partition("]")
    return before + re.split("[,-]", numbers)[0] + re.split("[,[]", after)[0]


def kubernetes(env: Environment) -> Place | None:
    """An indexed Job, alone or in a JobSet, with a headless service.

    Kubernetes does not tell a pod how many there are: the manifest sets ``PRIMAX_NUM_PROCESSES``.
    """
    if "KUBERNETES_SERVICE_HOST" not in env or "JOB_COMPLETION_INDEX" not in env:
        return None
    if "PRIMAX_NUM_PROCESSES" not in env:
        raise Incomplete(
            "this is a pod of an indexed Job (JOB_COMPLETION_INDEX is set), but "
            "PRIMAX_NUM_PROCESSES is not: set it in the manifest to the Job's completions"
        )
    n, rank = _number(env, "PRIMAX_NUM_PROCESSES"), _number(env, "JOB_COMPLETION_INDEX")
    address = env.get("PRIMAX_COORDINATOR_ADDRESS")
    if address is None:
        name = env.get("HOSTNAME") or socket.gethostname()
        if not name.endswith(f"-{rank}"):
            raise Incomplete(
                f"the pod is called {name!r}, which does not end in its index {rank}, so the name "
                "of the first pod is unknown: set PRIMAX_COORDINATOR_ADDRESS"
            )
        first = name.removesuffix(f"-{rank}") + "-0"
        domain = env.get("PRIMAX_POD_DOMAIN") or socket.getfqdn(name).partition(".")[2]
        address = joined_address(f"{first}.{domain}" if domain else first, 8476)
    return Place(address, n, rank, None, "JOB_COMPLETION_INDEX")


METHODS: Final[dict[str, Callable[[Environment], Place | None]]] = {
    "primax": primax, "k8s": kubernetes, "torchrun": torchrun, "ompi": open_mpi, "slurm": slurm,
    "mpi4py": mpi4py,
}  # fmt: skip
_AUTOMATIC: Final = ("k8s", "primax", "torchrun", "ompi", "slurm")
_LOOKED_FOR: Final = {
    "primax": "PRIMAX_COORDINATOR_ADDRESS, PRIMAX_NUM_PROCESSES and PRIMAX_PROCESS_ID",
    "k8s": "JOB_COMPLETION_INDEX in a pod of Kubernetes, with PRIMAX_NUM_PROCESSES",
    "torchrun": "RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT",
    "ompi": "OMPI_COMM_WORLD_RANK (Open MPI)",
    "slurm": "SLURM_PROCID in a step with more than one task",
    "mpi4py": "the package mpi4py and more than one rank",
}


def detect(method: str | None = None, env: Environment | None = None) -> Place:
    """The place that the environment gives to this process.

    Args:
      method: a key of ``METHODS``; by default all that only read variables are tried.
      env: the variables; by default those of the process.

    Raises:
      ValueError: there is no such method.
      JoinError: nothing says which processes belong together, or variables are missing.
    """
    if method is not None and method not in METHODS:
        raise ValueError(
            f"cluster_detection_method={method!r} is not supported: it is one of {sorted(METHODS)}"
        )
    variables = os.environ if env is None else env
    incomplete = []
    tried = _AUTOMATIC if method is None else (method,)
    for name in tried:
        try:
            place = METHODS[name](variables)
        except Incomplete as e:
            incomplete.append(f"{name}: {e}")
            continue
        if place is not None:
            return place
    lines = [f"  {name}: {_LOOKED_FOR[name]}" for name in tried]
    if incomplete:
        lines = [
            "found, but incomplete:",
            *(f"  {text}" for text in incomplete),
            "looked for:",
            *lines,
        ]
    else:
        lines = ["looked for:", *lines]
    raise JoinError(
        "nothing says which processes compute together. Give coordinator_address, num_processes "
        "and process_id, or start the processes with one of the launchers. "
        + "\n".join(lines)
        + _hint(variables)
    )


def _hint(env: Environment) -> str:
    if "SLURM_JOB_ID" in env and "SLURM_STEP_NUM_TASKS" not in env:
        return "\nThis is a shell of a Slurm job: start the processes with srun."
    return ""


def _need(env: Environment, names: tuple[str, ...]) -> None:
    missing = [name for name in names if not env.get(name)]
    if missing:
        present = [name for name in names if env.get(name)]
        raise Incomplete(f"{', '.join(present)} set, but not {', '.join(missing)}")


def _number(env: Environment, name: str) -> int:
    try:
        return int(env[name])
    except ValueError:
        raise Incomplete(f"{name}={env[name]!r} is no number") from None


def _optional(env: Environment, name: str) -> int | None:
    return _number(env, name) if env.get(name) else None


def _job_address(host: str, job: int) -> str:
    """An address that all processes of a job derive alike, from its number."""
    return joined_address(host, 61440 + job % 4096)
