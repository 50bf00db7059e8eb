"""Every check of every case of every function.

Second derivatives are compared for the first cases of each function, first derivatives for all.
"""

from __future__ import annotations

from collections import Counter

import pytest
from function_cases import all_cases
from function_checks import failures

from test_support import Case, numbered

TWICE = 2

CASES = all_cases()
_met: Counter[str] = Counter()
ORDERS = []
for _case in CASES:
    _met[_case.name] += 1
    ORDERS.append(2 if _met[_case.name] <= TWICE else 1)


@pytest.mark.parametrize(("case", "order"), list(zip(CASES, ORDERS)), ids=numbered(CASES))
def test_case(case: Case, order: int) -> None:
    assert not list(failures(case, order)), case
