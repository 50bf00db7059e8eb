"""Every check of every case of every function.

Second derivatives are compared for the first cases of each function, first derivatives for all.
"""

from __future__ import annotations

from collections import Counter

import pytest
from function_cases import Case, all_cases
from function_checks import verdicts

TWICE = 2

CASES = all_cases()
NAMES = [f"{n}-{c.name}" for n, c in enumerate(CASES)]
_met: Counter[str] = Counter()
ORDERS = []
for _case in CASES:
    _met[_case.name] += 1
    ORDERS.append(2 if _met[_case.name] <= TWICE else 1)


@pytest.mark.parametrize(("case", "order"), list(zip(CASES, ORDERS)), ids=NAMES)
def test_case(case: Case, order: int) -> None:
    assert not list(verdicts(case, order)), case
