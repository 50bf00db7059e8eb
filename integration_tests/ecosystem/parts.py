"""The parts: test suites of libraries, and a short script for each other library."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from zlib import crc32

from tools.steps import Step

HERE: Final = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Suite:
    """Test suite inside the installed package ``package`` of ``library``.

    ``where`` names the cause if the suite is more than ``report.SLOWER`` times slower. A quick run
    takes one of ``shares`` parts of the tests, which the commit chooses.
    """

    library: str
    package: str
    where: str = ""
    shares: int = 1

    @property
    def name(self) -> str:
        """Name of the part on the command line."""
        return self.library

    def allowed(self) -> dict[str, str]:
        """Allowed differences with reasons, from ``differences/<library>.toml``."""
        return read_allowed(HERE / "differences" / f"{self.library}.toml")

    def share(self, nodes: list[str], step: Step | None) -> list[str]:
        """Return the tests that run at a step of the rotation; all of them for ``None``."""
        if step is None or self.shares == 1:
            return nodes
        shares = min(self.shares, step.period)
        return [n for n in nodes if crc32(n.encode()) % shares == step.number % shares]


@dataclass(frozen=True)
class Script:
    """Script of the folder ``scripts`` whose last line of output is JSON.

    Its floats must agree to ``rtol`` and ``atol``: the rounding of float32, accumulated by the
      script.
    Iterative solvers stop within their own tolerance, and training amplifies differences.
    """

    name: str
    library: str
    rtol: float
    atol: float
    where: str = ""

    @property
    def path(self) -> Path:
        """Path of the script."""
        return HERE / "scripts" / f"{self.name}.py"


def read_allowed(path: Path) -> dict[str, str]:
    """Read a TOML file of ``[[allowed]]`` tables with ``reason`` and ``tests``; return reasons by
    test.

    Raises:
      ValueError: if a test occurs twice, or a table has no reason.
    """
    reasons: dict[str, str] = {}
    if not path.exists():
        return reasons
    for table in tomllib.loads(path.read_text("utf-8")).get("allowed", []):
        if not table.get("reason"):
            raise ValueError(f"{path.name}: an entry without a reason: {table.get('tests')}")
        for test in table["tests"]:
            if test in reasons:
                raise ValueError(f"{path.name}: {test} is listed twice")
            reasons[test] = table["reason"]
    return reasons


PARTS: Final[tuple[Suite | Script, ...]] = (
    Suite("chex", "chex"),
    Suite("optax", "optax", shares=4),
    Script("optax_digits", "optax", rtol=1e-3, atol=1e-5),
    Script("stax_digits", "jax", rtol=1e-3, atol=1e-5),
    Script("haiku_mlp", "dm-haiku", rtol=1e-3, atol=1e-5),
    Script("equinox_mlp", "equinox", rtol=1e-3, atol=1e-5),
    Script("jaxopt_solvers", "jaxopt", rtol=2e-3, atol=1e-4),
    Script("lineax_solves", "lineax", rtol=1e-4, atol=1e-5),
    Script("optimistix_solvers", "optimistix", rtol=1e-3, atol=1e-4),
    Script("jaxtyping_shapes", "jaxtyping", rtol=0.0, atol=0.0),
    Script("flax_sharded", "flax", rtol=1e-3, atol=1e-4),
    Script("orbax_sharded", "orbax-checkpoint", rtol=1e-3, atol=1e-5),
    Script("einops_shapes", "einops", rtol=1e-6, atol=1e-6),
)


def selected(names: list[str]) -> list[Suite | Script]:
    """Return the parts with the given names; all parts if no names are given.

    Raises:
      ValueError: for an unknown part.
    """
    known = {part.name for part in PARTS}
    if unknown := [name for name in names if name not in known]:
        raise ValueError(
            f"no part named {', '.join(unknown)}; there are {', '.join(sorted(known))}"
        )
    return [part for part in PARTS if not names or part.name in names]
