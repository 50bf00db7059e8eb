"""The conformance kit as pytest tests: one for each primitive, sample and check.

from primax_core.testing.pytest import conformance

test_my_primitives = conformance(my_p, other_p)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import pytest

from .._ir.primitive import Primitive
from . import verdicts as v
from .checks import CHECKS, OPTIONAL
from .conformance import cases, check_sample

FLOOR: Final = 0.35
"""The default of ``floor`` in `conformance`."""

# The case of a primitive that counts the applicable checks.
_APPLICABLE: Final = "applicable"
# Checks that compile little or nothing; the count runs them first.
_QUICK: Final = ("abstract", "parameters", "weak type", "mutation", "purity", "bad input")


def conformance(
    *prims: Primitive,
    checks: Sequence[str] | None = None,
    xfail: Mapping[tuple[str, str], str] | None = None,
    floor: float | Mapping[str, float] = FLOOR,
) -> Callable:
    """A test function, parametrized over primitives × samples × checks.

    A check that does not apply to a sample is skipped. An additional case of each primitive, with
    the check ``applicable``, fails if too few checks apply to any of its samples.

    Args:
      xfail: reasons of known failures, by the names of primitive and check; they must fail.
      floor: the minimum fraction of checks that apply to a sample of each primitive, from 0 to 1;
        or the fractions by names of primitives, 0.35 for the others.
    """
    known = xfail or {}
    names = list(CHECKS if checks is None else checks)
    params = [
        pytest.param(
            *case,
            id=f"{case[0].name}-{case[2]}-{case[3].replace(' ', '_')}",
            marks=[pytest.mark.xfail(reason=known[case[0].name, case[3]], strict=True)]
            if (case[0].name, case[3]) in known
            else [],
        )
        for case in cases(prims, names)
    ]
    samples: dict[Primitive, list[Any]] = {}
    for prim, sample, _, _ in cases(prims, names[:1]):
        samples.setdefault(prim, []).append(sample)
    params += [
        pytest.param(prim, tried, -1, _APPLICABLE, id=f"{prim.name}-{_APPLICABLE}")
        for prim, tried in samples.items()
    ]

    @pytest.mark.parametrize("prim, sample, index, check", params)
    def test_conformance(prim, sample, index, check):
        if check == _APPLICABLE:
            share = floor.get(prim.name, FLOOR) if isinstance(floor, Mapping) else floor
            enough_apply(prim, sample, names, share)
            return
        verdict = check_sample(prim, sample, index, check)
        if verdict.outcome in (v.SKIPPED, v.UNSUPPORTED):
            pytest.skip(f"{verdict.outcome}: {verdict.detail}")
        if verdict.outcome == v.XFAILED:
            pytest.xfail(verdict.detail)
        assert verdict.ok, str(verdict)

    return test_conformance


def enough_apply(
    prim: Primitive, samples: Sequence[Any], checks: Sequence[str], floor: float = FLOOR
) -> None:
    """Raise ``AssertionError`` if less than a fraction of the checks applies to any of the
    samples.
    """
    applied: set[str] = set()
    checks = [name for name in checks if name not in OPTIONAL]
    for check in sorted(checks, key=lambda name: name not in _QUICK):
        for i, sample in enumerate(samples):
            if len(applied) >= floor * len(checks):
                return
            if check_sample(prim, sample, i, check).outcome not in (v.SKIPPED, v.UNSUPPORTED):
                applied.add(check)
                break
    assert len(applied) >= floor * len(checks), (
        f"of {len(checks)} checks only {len(applied)} apply to the samples of primitive "
        f"{prim.name} ({', '.join(sorted(applied)) or 'none'}), less than {floor:.0%}; add samples "
        "to which more apply, or state a lower floor and the reason"
    )
