"""The conformance kit as pytest tests: one for each primitive, sample and check.

from primax_core.testing.pytest import conformance

test_my_primitives = conformance(my_p, other_p)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pytest

from .._ir.primitive import Primitive
from . import verdicts as v
from .conformance import cases, check_sample


def conformance(
    *prims: Primitive,
    checks: Sequence[str] | None = None,
    xfail: Mapping[tuple[str, str], str] | None = None,
) -> Callable:
    """A test function, parametrized over primitives × samples × checks.

    Args:
      xfail: reasons of known failures, by names of primitive and check; they must fail.
    """
    known = xfail or {}
    found = [
        pytest.param(
            *case,
            id=f"{case[0].name}-{case[2]}-{case[3].replace(' ', '_')}",
            marks=[pytest.mark.xfail(reason=known[case[0].name, case[3]], strict=True)]
            if (case[0].name, case[3]) in known
            else [],
        )
        for case in cases(prims, checks)
    ]

    @pytest.mark.parametrize("prim, sample, index, check", found)
    def test_conformance(prim, sample, index, check):
        verdict = check_sample(prim, sample, index, check)
        if verdict.outcome in (v.SKIPPED, v.UNSUPPORTED):
            return
        assert verdict.ok, str(verdict)

    return test_conformance
