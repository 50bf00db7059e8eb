"""``check_primitive``: every promise that a primitive makes, tried on its samples."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable, Mapping, Sequence
from types import ModuleType
from typing import Any

from .._base.config import enable_checks
from .._ir.primitive import Primitive, known_primitives
from .._ir.rules import RuleState, UnsupportedRule
from .._ir.samples import Sample, samples as samples_kind
from . import verdicts as v
from .calls import Call, Failure, NotApplicable
from .checks import CHECKS
from .verdicts import Report, Verdict


def check_primitive(
    prim: Primitive,
    samples: Iterable[Sample] | None = None,
    *,
    checks: Sequence[str] | None = None,
    xfail: Mapping[str, str] | None = None,
    seed: int = 0,
) -> Report:
    """Try a primitive's rules against each other and against arithmetic.

    Args:
      samples: calls to try; by default those of the primitive's ``samples`` rule.
      checks: names of the checks to run, all by default; ``primax_core.testing.CHECKS`` lists them:

        - ``abstract``: the type rule says what comes out; ``weak type``: results are weak only
          where all operands are;
        - ``compiled``: a compiled call gives what an eager one gives;
        - ``bad input``: wrong calls raise errors that say something;
        - ``purity``: rules read no values and always give the same program; ``mutation``: they
          change nothing they are given;
        - ``parameters`` can be hashed; ``programs`` print, are well formed and evaluate;
        - ``jvp`` against central differences in ``float64``; ``transpose``:
          ``⟨J v, w⟩ = ⟨v, Jᵀ w⟩``; ``second order``; ``symbolic zeros``;
        - ``batching`` and ``nested batching`` against loops.
      xfail: checks that are known to fail, with the reason. One that never fails is a failure.
      seed: where values are drawn from.

    Returns:
      The verdicts; ``report.ok`` tells whether all is well, and ``str(report)`` what is not, with
      Python that repeats each failure.

    >>> from primax_core.lax import sin_p
    >>> check_primitive(sin_p, checks=["jvp", "batching"]).ok
    True
    """
    own = samples is None
    tried = list(prim.require(samples_kind, "the conformance kit")() if own else samples)
    names = list(CHECKS if checks is None else checks)
    for name in [*names, *(xfail or {})]:
        if name not in CHECKS:
            raise ValueError(f"there is no check {name!r}; the checks are {', '.join(CHECKS)}")
    if not tried:
        raise ValueError(f"primitive {prim.name} has no samples to try")
    found = [
        check_sample(prim, sample, i, name, seed=seed, registered=own)
        for i, sample in enumerate(tried)
        for name in names
    ]
    return Report(_expected(found, xfail or {}))


def check_sample(
    prim: Primitive,
    sample: Sample,
    index: int,
    check: str,
    *,
    seed: int = 0,
    registered: bool = True,
) -> Verdict:
    """One check of one sample."""
    calls: dict[bool, Call] = {}

    def verdict(outcome: str, detail: str = "", reproduction: str = "") -> Verdict:
        return Verdict(prim.name, index, check, outcome, detail, reproduction)

    if check in sample.without:
        return verdict(v.SKIPPED, sample.without[check])
    if sample.raises is not None and check != "bad input":
        return verdict(v.SKIPPED, "the sample is bad input")

    def get(double: bool = False) -> Call:
        if double not in calls:
            calls[double] = Call(prim, sample, double, seed)
        return calls[double]

    double = check in ("jvp", "transpose", "second order", "symbolic zeros")
    try:
        with get(double).mode(), enable_checks(True):
            CHECKS[check](get)
    except NotApplicable as e:
        return verdict(v.SKIPPED, str(e))
    except UnsupportedRule as e:
        return verdict(v.UNSUPPORTED, str(e))
    except Exception as e:
        text = str(e) if isinstance(e, Failure) else f"{type(e).__name__}: {e}"
        return verdict(v.FAILED, text, _reproduction(prim, sample, index, check, seed, registered))
    return verdict(v.PASSED)


def _expected(found: list[Verdict], xfail: Mapping[str, str]) -> list[Verdict]:
    """The verdicts with failures that are expected marked so, and expectations that are stale."""
    marked = []
    for x in found:
        if x.check in xfail and x.outcome == v.FAILED:
            x = Verdict(x.primitive, x.sample, x.check, v.XFAILED, xfail[x.check])
        marked.append(x)
    for check, reason in xfail.items():
        if not any(x.check == check and x.outcome == v.XFAILED for x in marked):
            marked.append(Verdict(found[0].primitive, -1, check, v.STALE, reason))
    return marked


def _reproduction(
    prim: Primitive, sample: Sample, index: int, check: str, seed: int, own: bool
) -> str:
    lines = [
        "from primax_core.testing import check_sample, find_primitive",
        f"p = find_primitive({prim.name!r}, {prim.home!r})",
    ]
    if own:
        lines += [
            "from primax_core.extend import samples",
            f"sample = list(p.rules[samples]())[{index}]  # {sample!r}",
        ]
    else:
        lines += ["from primax_core.extend import *", f"sample = {sample!r}"]
    lines.append(f"print(check_sample(p, sample, {index}, {check!r}, seed={seed}))")
    return "\n".join("    " + line for line in lines)


def find_primitive(name: str, home: str) -> Primitive:
    """The primitive of a name that a module defines.

    Raises:
      LookupError: if there is none.
    """
    importlib.import_module(home)
    for prim in known_primitives():
        if prim.name == name and prim.home == home:
            return prim
    raise LookupError(f"module {home} defines no primitive {name!r}")


def primitives_of(package: ModuleType) -> list[Primitive]:
    """The primitives that the modules of a package define, by name; it imports all of them."""
    for info in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if not info.name.rpartition(".")[2].startswith("__"):
            importlib.import_module(info.name)
    prefix = package.__name__ + "."
    found = [p for p in known_primitives() if f"{p.home}.".startswith(prefix)]
    return sorted(found, key=lambda p: (p.name, p.home))


def cases(prims: Iterable[Primitive], checks: Sequence[str] | None = None) -> list[tuple[Any, ...]]:
    """Primitives × samples × checks, as arguments of :func:`check_sample`.

    Primitives that declare samples unsupported are left out; those without samples are an error.
    """
    return [
        (prim, sample, i, check)
        for prim in prims
        if prim.state_of(samples_kind) is not RuleState.UNSUPPORTED
        for i, sample in enumerate(prim.require(samples_kind, "the conformance kit")())
        for check in (CHECKS if checks is None else checks)
    ]
