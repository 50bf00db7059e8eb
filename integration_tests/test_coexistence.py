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


FOREIGN = """
import json, sys
import acme_core, jax, primax_core

LIBRARIES = {"primax_core": primax_core, "acme_core": acme_core, "jax": jax}
CALLS = {
    "lax": lambda own, t: own.lax.sin(t),
    "operator": lambda own, t: own.device_put(1.0) + t,
    "reflected": lambda own, t: t * own.device_put(1.0),
    "jit": lambda own, t: own.jit(lambda x: x)(t),
    "inside": lambda own, t: own.jit(lambda x: own.lax.mul(x, t))(1.0),
    "grad": lambda own, t: own.grad(lambda x: x)(t),
    "vmap": lambda own, t: own.vmap(lambda x: x)(t),
    "bind": lambda own, t: own.lax.neg_p.bind(t),
    "device_put": lambda own, t: own.device_put(t),
}
texts = {}
for name, other in LIBRARIES.items():
    for own in {primax_core, acme_core} - {other}:
        for how, transform in (("jit", other.jit), ("grad", other.grad), ("vmap", other.vmap)):
            for call, use in CALLS.items():
                def function(t):
                    try:
                        use(own, t)
                    except TypeError as error:
                        texts[f"{own.__name__} {call} {how} of {name}"] = [name, str(error)]
                    return t
                transform(function)(jax.numpy.ones(3) if how == "vmap" else 1.0)
for one, other in ((primax_core, acme_core), (acme_core, primax_core)):
    try:
        one.device_put(1.0) + other.device_put(1.0)
    except TypeError as error:
        texts[one.__name__] = [f"an array of {other.__name__}", str(error)]
print(json.dumps(texts))
"""


def test_tracers_and_arrays_of_other_libraries_are_named(copy: Path) -> None:
    path = os.pathsep.join([str(copy), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", FOREIGN],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    texts = json.loads(done.stdout.splitlines()[-1])
    assert len(texts) == 4 * 3 * 9 + 2
    for call, (expected, text) in texts.items():
        assert expected.replace("primax_core", "primax") in text.replace("primax_core", "primax"), (
            f"{call}: {text}"
        )
