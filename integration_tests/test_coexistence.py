"""The core, a vendored copy and jax in one process, imported in every order."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from primax_core.vendor import command

HERE = Path(__file__).resolve().parent
NAMES = ("primax_core", "acme_core", "jax")


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with ``acme_core``, a copy of the installed core."""
    folder = tmp_path_factory.mktemp("vendored")
    assert command.main(["--into", str(folder), "--name", "acme_core"]) == 0
    return folder


def compute(order: tuple[str, ...], copy: Path) -> list[dict[str, Any]]:
    script = HERE / "coexistence" / "compute.py"
    path = os.pathsep.join([str(copy), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, str(script), ",".join(order)],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    rounds: list[dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])
    return rounds


def assert_all_agree(rounds: list[dict[str, Any]]) -> None:
    reference = next(iter(rounds[0].values()))
    for round_ in rounds:
        for library, results in round_.items():
            for case, (dtype, value) in results.items():
                expected_dtype, expected = reference[case]
                assert dtype == expected_dtype, (library, case)
                np.testing.assert_allclose(value, expected, rtol=1e-5, atol=1e-6, err_msg=case)


@pytest.mark.parametrize("order", list(itertools.permutations(NAMES)), ids="-".join)
def test_three_libraries_in_one_process(order: tuple[str, ...], copy: Path) -> None:
    assert_all_agree(compute(order, copy))


def test_two_copies_do_not_change_jaxlib_or_load_jax(copy: Path) -> None:
    """jax is installed here, so an import by jaxlib would succeed and be detected."""
    assert_all_agree(compute(("primax_core", "acme_core"), copy))
