"""Every case of every function, through every check."""

from __future__ import annotations

import pytest
from function_cases import Case, all_cases
from function_checks import verdicts

CASES = all_cases()
NAMES = [f"{n}-{c.name}" for n, c in enumerate(CASES)]


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_case(case: Case, request: pytest.FixtureRequest) -> None:
    derivatives = not request.config.getoption("--without-derivatives")
    assert not list(verdicts(case, derivatives)), case
