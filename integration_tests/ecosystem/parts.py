"""The parts: test suites of libraries, and a short script for each other library."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from zlib import crc32

HERE: Final = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Suite:
    """Test suite of ``library``, inside its installed package ``package``.

    If the wheel has no tests, ``tests`` is their folder in the source distribution, which is
    downloaded. ``ignored`` are modules or tests (``module.py::test``), relative to the folder of
    the tests, that do not run: they need packages that are not installed, or take hours. If a
    library has several suites, ``part`` distinguishes their names. If ``modules`` are given, only
    these files and folders of the tests run. ``environment`` has variables for the tests: an option
    that the library reads when it is imported. ``where`` names the cause if the suite is more than
    ``report.SLOWER`` times slower. A quick run takes one of ``shares`` parts of the tests, which
    the commit chooses. The tests need the distributions ``needs`` beside what the library requires.
    """

    library: str
    package: str
    where: str = ""
    shares: int = 1
    tests: str = ""
    ignored: tuple[str, ...] = ()
    part: str = ""
    modules: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    needs: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Name of the part on the command line."""
        return f"{self.library}_{self.part}" if self.part else self.library

    def allowed(self) -> dict[str, str]:
        """Allowed differences with reasons, from ``differences/<name>.toml``."""
        return read_allowed(HERE / "differences" / f"{self.name}.toml")

    def share(self, nodes: list[str], turn: int | None) -> list[str]:
        """Return the tests of one of the shares, which take turns; all of them for ``None``."""
        if turn is None or self.shares == 1:
            return nodes
        return [n for n in nodes if crc32(n.encode()) % self.shares == turn % self.shares]


@dataclass(frozen=True)
class Script:
    """Script of the folder ``scripts`` whose last line of output is JSON.

    Its floats must agree to ``rtol`` and ``atol``: the rounding of float32, accumulated by the
      script.
    Iterative solvers stop within their own tolerance, and training amplifies differences.

    Its answers must be equal in each run of a side, unless ``varies`` is true: then they differ by
    rounding on jax too, because threads add in another order.

    It needs the distributions ``needs`` beside what the library requires. A library that is
    ``large``, of several gigabytes, is installed only if it is named.
    """

    name: str
    library: str
    rtol: float
    atol: float
    where: str = ""
    varies: bool = False
    needs: tuple[str, ...] = ()
    large: bool = False

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
