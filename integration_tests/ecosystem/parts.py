"""What is run: the suites of libraries, and a short program for each of the others."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Suite:
    """The tests that lie in the installed package ``package`` of ``library``.

    ``where`` says what takes the time, where it takes more than ``report.SLOWER`` times as long.
    """

    library: str
    package: str
    where: str = ""

    @property
    def name(self) -> str:
        """How the part is asked for."""
        return self.library

    def allowed(self) -> dict[str, str]:
        """Tests that may differ, and why, as ``differences/<library>.toml`` has them."""
        return read_allowed(HERE / "differences" / f"{self.library}.toml")


@dataclass(frozen=True)
class Script:
    """A program of ``scripts``, whose last line of output is JSON.

    Its floats agree to ``rtol`` and ``atol``: rounding of float32, carried through the program.
    Iterative solvers stop within their own tolerance, and a training run amplifies.
    """

    name: str
    library: str
    rtol: float
    atol: float
    where: str = ""

    @property
    def path(self) -> Path:
        """The program."""
        return HERE / "scripts" / f"{self.name}.py"


def read_allowed(path: Path) -> dict[str, str]:
    """Reasons by test, from a file of ``[[allowed]]`` tables with ``reason`` and ``tests``.

    Raises:
      ValueError: if a test stands there twice, or a table has no reason.
    """
    found: dict[str, str] = {}
    if not path.exists():
        return found
    for table in tomllib.loads(path.read_text("utf-8")).get("allowed", []):
        if not table.get("reason"):
            raise ValueError(f"{path.name}: an entry without a reason: {table.get('tests')}")
        for test in table["tests"]:
            if test in found:
                raise ValueError(f"{path.name}: {test} stands there twice")
            found[test] = table["reason"]
    return found


PARTS: Final[tuple[Suite | Script, ...]] = (
    Suite("chex", "chex"),
    Suite("optax", "optax"),
    Script("optax_digits", "optax", rtol=1e-3, atol=1e-5),
    Script("stax_digits", "jax", rtol=1e-3, atol=1e-5),
    Script("haiku_mlp", "dm-haiku", rtol=1e-3, atol=1e-5),
    Script("equinox_mlp", "equinox", rtol=1e-3, atol=1e-5),
    Script("jaxopt_solvers", "jaxopt", rtol=2e-3, atol=1e-4),
    Script("lineax_solves", "lineax", rtol=1e-4, atol=1e-5),
    Script("optimistix_solvers", "optimistix", rtol=1e-3, atol=1e-4),
    Script("jaxtyping_shapes", "jaxtyping", rtol=0.0, atol=0.0),
    Script("einops_shapes", "einops", rtol=1e-6, atol=1e-6),
)


def selected(names: list[str]) -> list[Suite | Script]:
    """The parts with these names, all without names.

    Raises:
      ValueError: if there is no such part.
    """
    known = {part.name for part in PARTS}
    if unknown := [name for name in names if name not in known]:
        raise ValueError(
            f"no part named {', '.join(unknown)}; there are {', '.join(sorted(known))}"
        )
    return [part for part in PARTS if not names or part.name in names]
