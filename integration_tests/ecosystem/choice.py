"""Which parts a run takes, and what has to be installed for them.

The noxfile imports this module, so it needs nothing but the standard library.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Final

from tools.steps import PERIOD, Step, commits, step_of_commit

from .catalogue import OF_EVERY_COMMIT, ON_DEMAND, PARTS
from .parts import HERE, Script, Suite

REQUIREMENTS: Final = HERE / "requirements.txt"
REQUIREMENTS_ON_DEMAND: Final = HERE / "requirements_on_demand.txt"
NO_TURNS: Final = "--no-turns"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that choose parts to the command line's parser."""
    parser.add_argument("--only", nargs="+", default=[], metavar="PART", help="only these parts")
    parser.add_argument("--all", action="store_true", help="all parts, also those on demand")
    parser.add_argument(
        "--quick",
        action="store_true",
        help="under jax, run only what the comparison needs; no table of times. "
        "Parts on demand take turns: the commit chooses some",
    )
    parser.add_argument(NO_TURNS, action="store_true", help="no parts on demand in a quick run")


def chosen(options: argparse.Namespace) -> list[Suite | Script]:
    """Return the parts that the options ask for.

    Raises:
      ValueError: for an unknown part.
    """
    if options.all:
        return list(PARTS)
    if options.only:
        return named(options.only)
    take_turns = options.quick and not options.no_turns
    visited = of_step(step_of_commit()) if take_turns else []
    return [*OF_EVERY_COMMIT, *visited]


def named(names: Sequence[str]) -> list[Suite | Script]:
    """Return the parts with these names.

    Raises:
      ValueError: for an unknown part.
    """
    known = {part.name for part in PARTS}
    if unknown := [name for name in names if name not in known]:
        raise ValueError(
            f"no part named {', '.join(unknown)}; there are {', '.join(sorted(known))}"
        )
    return [part for part in PARTS if part.name in names]


def of_step(step: Step | None) -> list[Suite | Script]:
    """Return the parts on demand that run at a step of the rotation; none for ``None``.

    Each of them runs once in a period, except large ones.
    """
    if step is None:
        return []
    take_turns = [p for p in ON_DEMAND if not (isinstance(p, Script) and p.large)]
    return take_turns[step.number :: step.period]


def turn_of_shares(part: Suite) -> int | None:
    """Return the number that chooses the share of a suite's tests; ``None`` without git.

    A part of every commit has another one at each commit, a part on demand at each of its turns.
    """
    count = commits()
    return count if count is None or part in OF_EVERY_COMMIT else count // PERIOD


def to_install(arguments: Sequence[str]) -> list[str]:
    """Return the arguments for pip that install what the parts of a command line need.

    The libraries of the parts on demand are large and many, so that only those of the chosen ones
    are installed, in the versions of ``requirements_on_demand.txt``.
    """
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    add_options(parser)
    on_demand = [p for p in chosen(parser.parse_known_args(arguments)[0]) if p in ON_DEMAND]
    libraries = {name for part in on_demand for name in (part.library, *part.needs)} - {"jax"}
    versions = ["-c", str(REQUIREMENTS_ON_DEMAND)] if libraries else []
    return ["-r", str(REQUIREMENTS), *versions, *sorted(libraries)]
