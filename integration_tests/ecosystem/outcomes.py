"""Outcomes of test suites, and differences between two runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from xml.etree import ElementTree


class Outcome(StrEnum):
    """Outcome of a test.

    A test counts as failed if one of its subtests fails, or the import of its module.
    """

    PASSED = "passed"
    SKIPPED = "skipped"
    FAILED = "failed"


Outcomes = Mapping[str, Outcome]
_WORSE = {Outcome.PASSED: 0, Outcome.SKIPPED: 1, Outcome.FAILED: 2}


def read_junit(path: Path) -> dict[str, Outcome]:
    """Read the outcomes by test (``module.Class::test``) from a JUnit file of pytest."""
    outcomes: dict[str, Outcome] = {}
    for case in ElementTree.parse(path).iter("testcase"):
        tags = {child.tag for child in case}
        outcome = Outcome.PASSED
        if tags & {"failure", "error"}:
            outcome = Outcome.FAILED
        elif "skipped" in tags:
            outcome = Outcome.SKIPPED
        name = "::".join(part for part in (case.get("classname"), case.get("name")) if part)
        outcomes[name] = max(outcome, outcomes.get(name, outcome), key=_WORSE.__getitem__)
    return outcomes


def junit_name(node: str) -> str:
    """Return the JUnit name of the test that pytest calls ``folder/module.py::Class::test``."""
    path, *inner, test = node.split("::")
    module = path.removesuffix(".py").replace("/", ".")
    return ".".join([module, *inner]) + "::" + test


@dataclass
class Comparison:
    """Comparison of the outcomes of one suite.

    ``differences`` are tests that pass there but not here, with their outcome here; ``stale`` are
    entries of the list of allowed differences that do not differ; ``unread`` are test modules that
    could not be imported there and were not compared.
    """

    here: Counter[Outcome]
    there: Counter[Outcome]
    differences: dict[str, str] = field(default_factory=dict)
    stale: dict[str, str] = field(default_factory=dict)
    unread: list[str] = field(default_factory=list)


def compare(ours: Outcomes, theirs: Outcomes, allowed: Mapping[str, str]) -> Comparison:
    """Compare test by test: a test that passes there must pass here, unless it is an allowed
    difference.

    A test that passes there and is skipped or missing here is a difference, too. ``theirs`` may
    omit tests that pass here.
    """
    comparison = Comparison(Counter(ours.values()), Counter(theirs.values()))
    comparison.unread = [name for name in theirs if "::" not in name]
    for test, outcome in theirs.items():
        if outcome is Outcome.PASSED and ours.get(test) is not Outcome.PASSED:
            if test not in allowed:
                comparison.differences[test] = str(ours.get(test, "not found"))
    for test in allowed:
        if ours.get(test) is Outcome.PASSED:
            comparison.stale[test] = "passes here"
        elif test not in theirs:
            comparison.stale[test] = "is not there"
        elif theirs[test] is not Outcome.PASSED:
            comparison.stale[test] = f"is {theirs[test]} there too"
    return comparison
