"""A pytest plugin that runs a share of the cases of large parametrized tests.

    python -m pytest -p tools.rotation --rotation commit packages/core/tests

Cases of a test function that has many are grouped by kind. The first case of each kind runs every
time; the others are distributed over the steps of a period, so that a whole period visits every
case. The step follows from the number of commits, which makes a run repeatable and lets the cache
of executables help the next run of the same commit.
"""

from __future__ import annotations

import re
import zlib
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import pytest

from tools.steps import PERIOD, Step

# Test functions with fewer cases run all of them.
LARGE: Final = 9

_NUMBER: Final = re.compile(r"[-+]?\d+(\.\d+)?")
_DTYPE: Final = re.compile(
    r"bool_?|(u?int|float|complex)\d+|bfloat16|float\d_\w+|single|double|True|False|None"
)
# Names that pytest gives to parameters without a name.
_ANONYMOUS: Final = re.compile(r"(args|params|shape|dims|axes|order|mapped)\d+")


def kind_of(case: str) -> str:
    """The kind of a parametrized case, from the part of its id between the brackets.

    Numbers, dtypes and parameters without a name distinguish cases of one kind:
    ``12-softmax-float32`` and ``13-softmax-int8`` are of the kind ``softmax``.
    """
    parts = [p for p in case.split("-") if p and not _same_kind(p)]
    return "-".join(re.sub(r"\d+$", "", p).strip() for p in parts)


def _same_kind(part: str) -> bool:
    return any(p.fullmatch(part) for p in (_NUMBER, _DTYPE, _ANONYMOUS))


def chosen(
    cases: Sequence[tuple[str, str]],
    step: Step | None,
    smoke: bool = False,
    marked: Mapping[str, int] = MappingProxyType({}),
    whole: Collection[str] = (),
) -> list[bool]:
    """Which cases run, given the test function and the kind of each in order of collection.

    Args:
      smoke: one case of each test function, whatever its size and the kinds.
      marked: test functions whose cases rotate however few they are, with the number of steps in
        which they are all visited.
      whole: marked test functions of which also the first case of each kind rotates.
    """
    if step is None and not smoke:
        return [True] * len(cases)
    sizes = Counter(function for function, _ in cases)
    seen: dict[tuple[str, str], int] = {}
    runs = []
    for function, kind in cases:
        group = (function, "" if smoke else kind)
        position = seen[group] = seen.get(group, -1) + 1
        if smoke or step is None:
            runs.append(position == 0)
        elif function not in whole and (
            position == 0 or (sizes[function] < LARGE and function not in marked)
        ):
            runs.append(True)
        else:
            # Small groups start at different steps, so that all steps take about as long.
            offset = zlib.crc32(repr(group).encode())
            steps = min(marked.get(function, step.period), step.period)
            runs.append((offset + position) % steps == step.number % steps)
    return runs


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--rotation",
        default="commit",
        metavar="STEP",
        help="cases of large tests that run: 'commit' (the step of the checked-out commit), "
        "a number, NUMBER/PERIOD, 'smoke' (one of each test function), or 'all'",
    )
    parser.addoption(
        "--one-kind",
        action="store_true",
        help="the cases of each test function are one kind: a smaller share, for a run beside "
        "another that tests every kind",
    )


def pytest_configure(config: pytest.Config) -> None:
    # Workers of xdist get the controller's options, and so the same step.
    option = config.option
    if option.rotation not in ("all", "smoke"):
        asked = option.keyword or any("::" in str(a) for a in config.args)
        step = None if asked and option.rotation == "commit" else _parse(option.rotation)
        option.rotation = "all" if step is None else str(step)


def _parse(text: str) -> Step | None:
    try:
        return Step.parse(text)
    except ValueError:
        raise pytest.UsageError(
            f"--rotation={text} is none of commit, all, smoke, NUMBER, NUMBER/PERIOD"
        ) from None


def pytest_report_header(config: pytest.Config) -> str:
    return f"rotation: {config.option.rotation}"


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    text = config.option.rotation
    smoke = text == "smoke"
    marks = {
        item.nodeid.partition("[")[0]: mark
        for item in items
        if (mark := item.get_closest_marker("rotate"))
    }
    marked = {name: mark.kwargs.get("every", PERIOD) for name, mark in marks.items()}
    whole = {name for name, mark in marks.items() if mark.kwargs.get("whole")}
    step = None if smoke else Step.parse(text)
    groups = [group_of(i) for i in items]
    if config.option.one_kind:
        groups = [(function, "") for function, _ in groups]
    runs = chosen(groups, step, smoke, marked, whole)
    if not all(runs):
        config.hook.pytest_deselected(items=[i for i, run in zip(items, runs) if not run])
        items[:] = [i for i, run in zip(items, runs) if run]


def group_of(item: pytest.Item) -> tuple[str, str]:
    """The test function that an item is a case of, and the kind of the case.

    ``@pytest.mark.rotate("prim", "check")`` names the parameters that make the kind, and
    ``@pytest.mark.rotate()`` makes all cases of a function one kind. With ``every=4`` four
    consecutive steps visit all cases. ``whole=True`` is for tests that take long: their first case
    rotates too, and so does a test without parameters.
    """
    spec = getattr(item, "callspec", None)
    if spec is None:
        return item.nodeid, ""
    function = item.nodeid.partition("[")[0]
    mark = item.get_closest_marker("rotate")
    if mark is None:
        return function, kind_of(spec.id)
    return function, "-".join(_name(spec.params[name]) for name in mark.args)


def _name(value: Any) -> str:
    name = getattr(value, "name", None)
    return name if isinstance(name, str) else str(value)
