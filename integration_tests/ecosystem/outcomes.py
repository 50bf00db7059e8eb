"""Outcomes of test suites, and what differs between two runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from xml.etree import ElementTree


class Outcome(StrEnum):
    """How a test ended. A test is failed if one of its subtests is, or its module's import."""

    PASSED = "passed"
    SKIPPED = "skipped"
    FAILED = "failed"


Outcomes = Mapping[str, Outcome]
_WORSE = {Outcome.PASSED: 0, Outcome.SKIPPED: 1, Outcome.FAILED: 2}


def read_junit(path: Path) -> dict[str, Outcome]:
    """Outcomes by test (``module.Class::test``) from pytest's file in JUnit's format."""
    found: dict[str, Outcome] = {}
    for case in ElementTree.parse(path).iter("testcase"):
        tags = {child.tag for child in case}
        outcome = Outcome.PASSED
        if tags & {"failure", "error"}:
            outcome = Outcome.FAILED
        elif "skipped" in tags:
            outcome = Outcome.SKIPPED
        name = "::".join(part for part in (case.get("classname"), case.get("name")) if part)
        found[name] = max(outcome, found.get(name, outcome), key=_WORSE.__getitem__)
    return found


def junit_name(node: str) -> str:
    """The name in JUnit's file of the test that pytest calls ``folder/module.py::Class::test``."""
    path, *inner, test = node.split("::")
    module = path.removesuffix(".py").replace("/", ".")
    return ".".join([module, *inner]) + "::" + test


@dataclass
class Comparison:
    """How the outcomes of one suite compare.

    ``differences`` are tests that pass there and not here, with what became of them here;
    ``stale`` are entries of the list of allowed differences that are none; ``unread`` are modules
    of tests that could not be imported there, so that nothing was compared.
    """

    here: Counter[Outcome]
    there: Counter[Outcome]
    differences: dict[str, str] = field(default_factory=dict)
    stale: dict[str, str] = field(default_factory=dict)
    unread: list[str] = field(default_factory=list)


def compare(ours: Outcomes, theirs: Outcomes, allowed: Mapping[str, str]) -> Comparison:
    """Compares test by test: what passes there has to pass here, unless it is allowed not to.

    A test that passes there and is skipped, or not found, here is a difference too. ``theirs`` may
    leave out tests that pass here.
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
