"""``check_primitive``: checks of all rules of a primitive on its samples."""

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
from .checks import CHECKS, DOUBLE
from .verdicts import Report, Verdict


def check_primitive(
    prim: Primitive,
    samples: Iterable[Sample] | None = None,
    *,
    checks: Sequence[str] | None = None,
    xfail: Mapping[str, str] | None = None,
    seed: int = 0,
) -> Report:
    """Check a primitive's rules against each other and against numerical results.

    Args:
      prim: the primitive.
      samples: the calls to check; by default those of the primitive's ``samples`` rule.
      checks: names of the checks, by default all; ``primax_core.testing.CHECKS`` lists them:

        - ``abstract``: the results have the avals of the abstract rule; ``weak type``: a result has
          a weak type only if all operands have one;
        - ``compiled``: a compiled call equals an eager one;
        - ``bad input``: wrong calls raise errors with a message;
        - ``purity``: rules read no values and always give the same jaxpr; ``mutation``: they change
          none of their arguments;
        - ``parameters`` are hashable; ``programs``: jaxprs print, are well formed and evaluate;
        - ``jvp`` against central differences in ``float64``; ``transpose``:
          ``⟨J v, w⟩ = ⟨v, Jᵀ w⟩``; ``second order``; ``symbolic zeros``;
        - ``batching`` and ``nested batching`` against loops;
        - ``effects``: only primitives with effects do more than compute; ``expected``: the values
          of the sample's ``expect``; ``expansion``, ``dead code`` and ``saved values``: rules
          that few primitives have, against the primitive.
      xfail: checks that are known to fail, with the reason. A check that never fails is an error.
        `Sample.xfail` does the same for one sample.
      seed: seed of the drawn values.

    Returns:
      The verdicts. ``report.ok`` is true if there are no failures; ``str(report)`` lists them, with
      Python code that reproduces each failure.

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
    results = [
        check_sample(prim, sample, i, name, seed=seed, registered=own)
        for i, sample in enumerate(tried)
        for name in names
    ]
    return Report(_expected(results, xfail or {}))


def check_sample(
    prim: Primitive,
    sample: Sample,
    index: int,
    check: str,
    *,
    seed: int = 0,
    registered: bool = True,
) -> Verdict:
    """Run one check of one sample of a primitive.

    Args:
      prim: the primitive.
      sample: the sample: operands and parameters.
      index: the position of the sample, for messages.
      check: the name of the check.
      seed: seed of the random operands.
      registered: the primitive can be found by its name; the code in a failure's report then does
        so.

    Returns:
      A ``Verdict`` with the attributes ``outcome`` (``"passed"``, ``"failed"``, ``"skipped"``,
      ...), ``detail`` and ``reproduction``.

    Raises:
      ValueError: if there is no such check.

    >>> from primax_core import lax
    >>> from primax_core.testing import cases
    >>> case = cases([lax.sin_p])[0]
    >>> check_sample(*case).outcome
    'passed'
    """
    calls: dict[bool, Call] = {}

    def verdict(outcome: str, detail: str = "", reproduction: str = "") -> Verdict:
        return Verdict(prim.name, index, check, outcome, detail, reproduction)

    if check not in CHECKS:
        raise ValueError(f"there is no check {check!r}; the checks are {', '.join(CHECKS)}")
    if check in sample.without:
        return verdict(v.SKIPPED, sample.without[check])
    if sample.raises is not None and check != "bad input":
        return verdict(v.SKIPPED, "the sample is bad input")

    def get(double: bool = False) -> Call:
        if double not in calls:
            calls[double] = Call(prim, sample, double, seed)
        return calls[double]

    try:
        with get(check in DOUBLE).mode(), enable_checks(True):
            CHECKS[check](get)
    except NotApplicable as e:
        return verdict(v.SKIPPED, str(e))
    except UnsupportedRule as e:
        return verdict(v.UNSUPPORTED, e.args[0])
    except Exception as e:
        text = str(e) if isinstance(e, Failure) else f"{type(e).__name__}: {e}"
        if check in sample.xfail:
            return verdict(v.XFAILED, sample.xfail[check])
        return verdict(v.FAILED, text, _reproduction(prim, sample, index, check, seed, registered))
    if check in sample.xfail:
        return verdict(v.STALE, sample.xfail[check])
    return verdict(v.PASSED)


def _expected(results: list[Verdict], xfail: Mapping[str, str]) -> list[Verdict]:
    """The verdicts with expected failures marked, and with the expectations that are stale."""
    marked = []
    for x in results:
        if x.check in xfail and x.outcome == v.FAILED:
            x = Verdict(x.primitive, x.sample, x.check, v.XFAILED, xfail[x.check])
        marked.append(x)
    for check, reason in xfail.items():
        if not any(x.check == check and x.outcome == v.XFAILED for x in marked):
            marked.append(Verdict(results[0].primitive, -1, check, v.STALE, reason))
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
    return "\n".join(lines)


def find_primitive(name: str, home: str) -> Primitive:
    """The primitive of a name that is defined in a module.

    Args:
      name: the name of the primitive.
      home: the name of the module.

    Returns:
      A primitive.

    Raises:
      LookupError: if the module defines none of this name.
      ModuleNotFoundError: if there is no such module.

    Two modules may define primitives of one name.

    >>> from primax_core.testing import find_primitive
    >>> find_primitive("sin", "primax_core.lax.trigonometric")
    sin
    """
    importlib.import_module(home)
    for prim in known_primitives():
        if prim.name == name and prim.home == home:
            return prim
    raise LookupError(f"module {home} defines no primitive {name!r}")


def primitives_of(package: ModuleType) -> list[Primitive]:
    """The primitives defined in the modules of a package.

    Args:
      package: the package. All its modules are imported.

    Returns:
      A list, ordered by name.

    The conformance kit tests all primitives of a package by it, see :func:`cases`.

    >>> import primax_core.lax.linalg
    >>> from primax_core.testing import primitives_of
    >>> "lu" in [prim.name for prim in primitives_of(primax_core.lax.linalg)]
    True
    """
    for info in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if not info.name.rpartition(".")[2].startswith("__"):
            importlib.import_module(info.name)
    prefix = package.__name__ + "."
    defined = [p for p in known_primitives() if f"{p.home}.".startswith(prefix)]
    return sorted(defined, key=lambda p: (p.name, p.home))


def cases(prims: Iterable[Primitive], checks: Sequence[str] | None = None) -> list[tuple[Any, ...]]:
    """Primitives × samples × checks, as arguments of :func:`check_sample`.

    Args:
      prims: primitives.
      checks: names of checks; by default all.

    Returns:
      A list of tuples ``(primitive, sample, index, check)``, for parametrized tests.

    Raises:
      MissingRule: for a primitive without samples. Those that declare samples unsupported are
        skipped.

    >>> from primax_core import lax
    >>> from primax_core.testing import cases
    >>> len(cases([lax.sin_p])) > 10
    True
    """
    return [
        (prim, sample, i, check)
        for prim in prims
        if prim.state_of(samples_kind) is not RuleState.UNSUPPORTED
        for i, sample in enumerate(prim.require(samples_kind, "the conformance kit")())
        for check in (CHECKS if checks is None else checks)
    ]
