"""Comparison of one part on both sides."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median

from .choice import turn_of_shares
from .outcomes import Outcome, compare, junit_name, read_junit
from .parts import Script, Suite
from .report import Row
from .sides import Side
from .values import differences


@dataclass(frozen=True)
class Plan:
    """Options of a run.

    ``here`` and ``there`` are the sides, ``scratch`` is a folder for caches and files. Scripts run
    ``rounds`` times; suites run on ``workers`` processes. If ``whole`` is false, a suite's share of
    the commit runs here, there only the tests that do not pass here, and nothing runs warm.
    """

    here: Side
    there: Side
    scratch: Path
    rounds: int = 1
    workers: int = 2
    whole: bool = True


@dataclass
class Result:
    """Row of a part, and descriptions of its differences."""

    row: Row
    faults: list[str] = field(default_factory=list)


def run_script(plan: Plan, script: Script) -> Result:
    """Run a script, cold and then warm, on both sides in turn."""
    seconds: dict[tuple[str, str], list[float]] = {}
    answers: dict[str, object] = {}
    faults: list[str] = []
    for turn in range(plan.rounds):
        for heat in ("cold", "warm"):
            for side in (plan.here, plan.there):
                if heat == "warm" and side is plan.there and not plan.whole:
                    continue
                cache = plan.scratch / f"{script.name}-{side.name}-{turn}"
                answer, time = side.run_script(script.path, cache)
                seconds.setdefault((heat, side.name), []).append(time)
                first = answers.setdefault(f"{side.name}, {heat}", answer)
                if not _repeated(script, answer, first):
                    faults.append(f"{side.name} answers differ from run to run")
        ours = [answers[f"{plan.here.name}, {heat}"] for heat in ("cold", "warm")]
        if not _repeated(script, *ours):
            faults.append("compiled programs from the cache give another answer")
    theirs = answers[f"{plan.there.name}, cold"]
    disagree = list(differences(ours[0], theirs, script.rtol, script.atol))
    faults += disagree
    times = {f"{heat}_{side}": median(samples) for (heat, side), samples in seconds.items()}
    row = Row(
        name=script.name,
        library=script.library,
        version=plan.there.version_of(script.library),
        what=f"`{script.name}.py`",
        passed_here=0 if disagree else 1,
        passed_there=1,
        where=script.where,
        **times,
    )
    return Result(row, faults)


def _repeated(script: Script, answer: object, first: object) -> bool:
    """Return True if two runs of a script on one side agree."""
    if script.varies:
        return not any(differences(answer, first, script.rtol, script.atol))
    return answer == first


def run_suite(plan: Plan, suite: Suite) -> Result:
    """Run a library's tests and compare test by test."""
    allowed = suite.allowed()
    here = replace(plan.here, environment=suite.environment)
    there = replace(plan.there, environment=suite.environment)
    plan = replace(plan, here=here, there=there)
    caches = {side.name: plan.scratch / f"{suite.name}-{side.name}" for side in _sides(plan)}
    files = {side.name: plan.scratch / f"{suite.name}-{side.name}.xml" for side in _sides(plan)}
    folders = _folders(plan, suite)
    times: dict[str, float] = {}

    def run(side: Side, heat: str, tests: list[str] | None = None) -> None:
        name = side.name
        times[f"{heat}_{name}"] = side.run_tests(
            folders[name],
            caches[name],
            files[name],
            plan.workers,
            tests,
            suite.ignored,
            suite.modules,
        )

    if plan.whole:
        run(plan.here, "cold")
        ours = read_junit(files[plan.here.name])
        run(plan.there, "cold")
        theirs = read_junit(files[plan.there.name])
        run(plan.here, "warm")
        again = read_junit(files[plan.here.name])
        # jax keeps no executables unless it is configured: a second run there repeats the first.
        times[f"warm_{plan.there.name}"] = times[f"cold_{plan.there.name}"]
    else:
        tests = _share(plan, suite, folders[plan.there.name])
        run(plan.here, "cold", tests if suite.shares > 1 else None)
        ours = again = read_junit(files[plan.here.name])
        theirs = _doubtful(plan, suite, tests, ours, folders[plan.there.name])
        if suite.shares > 1:
            names = set(map(junit_name, tests))
            allowed = {test: reason for test, reason in allowed.items() if test in names}
    comparison = compare(ours, theirs, allowed)
    faults = [f"{module} could not be imported there" for module in comparison.unread]
    faults += [f"{test} passes there, {how} here" for test, how in comparison.differences.items()]
    faults += [
        f"{test}, on the list of differences, {why}" for test, why in comparison.stale.items()
    ]
    faults += [
        f"{test} passes with an empty cache, {again.get(test, 'not found')} with a full one"
        for test, outcome in ours.items()
        if outcome is Outcome.PASSED and again.get(test) is not Outcome.PASSED
    ]
    row = Row(
        name=suite.name,
        library=suite.library,
        version=plan.there.version_of(suite.library),
        what=f"its tests in `{suite.tests or suite.part}`" if suite.part else "its test suite",
        passed_here=comparison.here[Outcome.PASSED],
        passed_there=comparison.there[Outcome.PASSED] if plan.whole else None,
        where=suite.where,
        **times,
    )
    return Result(row, faults)


def _sides(plan: Plan) -> tuple[Side, Side]:
    return plan.here, plan.there


def _folders(plan: Plan, suite: Suite) -> dict[str, Path]:
    """The folders of the tests: of the installed packages, or of the downloaded sources."""
    if not suite.tests:
        return {side.name: side.folder_of(suite.package) for side in _sides(plan)}
    sources = plan.there.download(suite.library, plan.scratch / "sources")
    return {side.name: sources / suite.tests for side in _sides(plan)}


def _share(plan: Plan, suite: Suite, folder: Path) -> list[str]:
    """The tests of a quick run."""
    cache = plan.scratch / f"{suite.name}-{plan.there.name}"
    nodes = plan.there.collect(folder, cache, suite.ignored, suite.modules)
    if not nodes:
        raise ValueError(f"{suite.name}: no tests were found in {folder}")
    return suite.share(nodes, turn_of_shares(suite))


def _doubtful(
    plan: Plan, suite: Suite, tests: list[str], ours: dict[str, Outcome], folder: Path
) -> dict[str, Outcome]:
    """Outcomes on the other side of the tests that do not pass here."""
    doubtful = [test for test in tests if ours.get(junit_name(test)) is not Outcome.PASSED]
    if not doubtful:
        return {}
    cache = plan.scratch / f"{suite.name}-{plan.there.name}"
    junit = plan.scratch / f"{suite.name}-{plan.there.name}.xml"
    plan.there.run_tests(folder, cache, junit, plan.workers, doubtful)
    return read_junit(junit)
