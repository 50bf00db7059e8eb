"""Detection of processes from the variables of each launcher."""

from __future__ import annotations

import pytest

from primax_distributed.processes import JoinError
from primax_distributed.processes._clusters import Place, detect, first_node

FOUND = {
    "launchers of this library": (
        {
            "PRIMAX_COORDINATOR_ADDRESS": "h0:99", "PRIMAX_NUM_PROCESSES": "4",
            "PRIMAX_PROCESS_ID": "3",
        },
        Place("h0:99", 4, 3, None, "PRIMAX_*"),
    ),
    "torchrun": (
        {
            "RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "10.0.0.1", "MASTER_PORT": "29500",
            "LOCAL_RANK": "1",
        },
        Place("10.0.0.1:29501", 2, 1, 1, "RANK and MASTER_ADDR"),
    ),
    "Open MPI 4": (
        {
            "OMPI_COMM_WORLD_RANK": "5", "OMPI_COMM_WORLD_SIZE": "8",
            "OMPI_COMM_WORLD_LOCAL_RANK": "1",
            "OMPI_MCA_orte_hnp_uri": "4100.0;tcp://10.1.2.3,192.168.0.1:3456",
        },
        Place("10.1.2.3:61444", 8, 5, 1, "OMPI_COMM_WORLD_*"),
    ),
    "Open MPI 5 on one machine": (
        {
            "OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "2",
            "OMPI_COMM_WORLD_LOCAL_SIZE": "2", "PMIX_NAMESPACE": "A",
        },
        Place("127.0.0.1:61505", 2, 0, None, "OMPI_COMM_WORLD_*"),
    ),
    "Slurm": (
        {
            "SLURM_JOB_ID": "17", "SLURM_PROCID": "2", "SLURM_STEP_NUM_TASKS": "4",
            "SLURM_STEP_NODELIST": "tux[03-07,9]", "SLURM_LOCALID": "0", "SLURM_STEP_ID": "1",
        },
        Place("tux03:61518", 4, 2, 0, "SLURM_*"),
    ),
    "Kubernetes": (
        {
            "KUBERNETES_SERVICE_HOST": "10.96.0.1", "JOB_COMPLETION_INDEX": "1",
            "PRIMAX_NUM_PROCESSES": "3", "HOSTNAME": "train-1", "PRIMAX_POD_DOMAIN": "svc",
        },
        Place("train-0.svc:8476", 3, 1, None, "JOB_COMPLETION_INDEX"),
    ),
    "Kubernetes with an address": (
        {
            "KUBERNETES_SERVICE_HOST": "10.96.0.1", "JOB_COMPLETION_INDEX": "0",
            "PRIMAX_NUM_PROCESSES": "3", "PRIMAX_COORDINATOR_ADDRESS": "train-0.svc:1234",
        },
        Place("train-0.svc:1234", 3, 0, None, "JOB_COMPLETION_INDEX"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FOUND)
def test_found(name):
    environment, place = FOUND[name]
    assert detect(env=environment) == place


INCOMPLETE = {
    "PRIMAX_NUM_PROCESSES": (
        {"PRIMAX_COORDINATOR_ADDRESS": "h:1", "PRIMAX_PROCESS_ID": "0"},
        "PRIMAX_COORDINATOR_ADDRESS, PRIMAX_PROCESS_ID set, but not PRIMAX_NUM_PROCESSES",
    ),
    "torchrun without an address": (
        {"RANK": "0", "WORLD_SIZE": "2"},
        "torchrun: RANK, WORLD_SIZE set, but not MASTER_ADDR, MASTER_PORT",
    ),
    "no number": (
        {"RANK": "0", "WORLD_SIZE": "two", "MASTER_ADDR": "h", "MASTER_PORT": "1"},
        "WORLD_SIZE='two' is no number",
    ),
    "Slurm without nodes": (
        {"SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "2", "SLURM_JOB_ID": "1"},
        "slurm: SLURM_JOB_ID set, but not SLURM_STEP_NODELIST",
    ),
    "a pod without the number of pods": (
        {"KUBERNETES_SERVICE_HOST": "10.96.0.1", "JOB_COMPLETION_INDEX": "1"},
        "PRIMAX_NUM_PROCESSES is not: set it in the manifest",
    ),
    "a pod of another name": (
        {
            "KUBERNETES_SERVICE_HOST": "10.96.0.1", "JOB_COMPLETION_INDEX": "1",
            "PRIMAX_NUM_PROCESSES": "2", "HOSTNAME": "worker",
        },
        "the pod is called 'worker', which does not end in its index 1",
    ),
    "an address that is none": (
        {
            "OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "2",
            "OMPI_MCA_orte_hnp_uri": "7.0;none",
        },
        "OMPI_MCA_orte_hnp_uri='7.0;none' names no address",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", INCOMPLETE)
def test_incomplete(name):
    environment, text = INCOMPLETE[name]
    with pytest.raises(JoinError) as caught:
        detect(env=environment)
    assert "found, but incomplete:" in str(caught.value) and text in str(caught.value)


def test_a_refusal_lists_what_was_looked_for():
    with pytest.raises(JoinError) as caught:
        detect(env={})
    text = str(caught.value)
    assert text.startswith("nothing says which processes compute together. Give coordinator_addr")
    for name in ("PRIMAX_PROCESS_ID", "MASTER_ADDR", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID"):
        assert name in text
    assert "incomplete" not in text


@pytest.mark.parametrize("tasks", [None, "1"])
def test_a_shell_of_a_slurm_job_is_no_step(tasks):
    environment = {"SLURM_JOB_ID": "1", "SLURM_PROCID": "0", "SLURM_NTASKS": "8"}
    if tasks is not None:
        environment["SLURM_STEP_NUM_TASKS"] = tasks
    with pytest.raises(JoinError) as caught:
        detect(env=environment)
    assert ("start the processes with srun" in str(caught.value)) == (tasks is None)


def test_one_method():
    environment = FOUND["torchrun"][0] | FOUND["Slurm"][0]
    assert detect("slurm", environment).found_by == "SLURM_*"
    assert detect("torchrun", environment).found_by == "RANK and MASTER_ADDR"
    with pytest.raises(JoinError, match=r"(?s)looked for:.*PRIMAX_COORDINATOR_ADDRESS"):
        detect("primax", environment)
    with pytest.raises(ValueError, match="cluster_detection_method='slrum' is not supported: it"):
        detect("slrum", environment)


@pytest.mark.parametrize("nodes, first", [
    ("a", "a"), ("a,b", "a"), ("tux[3-7]", "tux3"), ("tux[03,05-7],b1", "tux03"),
    ("a1,b[2-3]", "a1"), ("gpu[01-02].cluster", "gpu01.cluster"),
])  # fmt: skip
def test_first_node(nodes, first):
    assert first_node(nodes) == first
