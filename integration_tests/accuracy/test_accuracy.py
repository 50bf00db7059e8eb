"""A few arguments of each function, against the recorded bounds."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("mpmath")
pytest.importorskip("scipy")

from integration_tests.accuracy import report
from integration_tests.accuracy.__main__ import measured
from integration_tests.accuracy.cases import CASES
from integration_tests.accuracy.measure import Error, error, exact


@pytest.mark.optimised  # without optimisations XLA computes cbrt by powers
@pytest.mark.rotate()
@pytest.mark.parametrize("case", CASES, ids=lambda c: c.title)
def test_errors_are_within_bounds(case) -> None:
    assert report.excesses([measured(case, ["primax"], 12, seed=1)]) == []


def test_errors_are_counted_in_ulp() -> None:
    x = np.float32([2.0, 3.0])
    values = exact(lambda v: v * v, [x], np.float32)
    computed = np.float32([4.0, np.nextafter(np.float32(9), np.float32(10))])
    assert error(computed, values, [x], np.float32) == Error(1.0, 0.5, (3.0,))
    assert error([np.nan, 9], values, [x], np.float32).worst == np.inf


def test_excesses_are_reported() -> None:
    large = {d: {"primax": Error(1e30, 1.0, (0.5,))} for d in report.DTYPES}
    (line, _) = report.excesses([report.Row("exp", large)])
    assert line.startswith("exp, float32: 1.0e30 at 0.5 ulp; the bound is ")


def test_the_table_replaces_the_text_between_the_markers() -> None:
    page = f"a\n{report.BEGIN}\nold\n{report.END}\nb\n"
    assert report.put_into(page, "new") == f"a\n{report.BEGIN}\n\nnew\n\n{report.END}\nb\n"
    with pytest.raises(ValueError, match="once each"):
        report.put_into("a", "new")
