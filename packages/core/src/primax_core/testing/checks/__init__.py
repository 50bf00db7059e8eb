"""The checks of the conformance kit, by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ..calls import Call, Failure as Failure
from . import batching, consistency, derivatives, programs, purity, values

Check = Callable[[Callable[..., Call]], None]
"""Receives a function from ``double=`` to the call in that precision; raises an error on
failure.
"""

CHECKS: Final[dict[str, Check]] = {
    "abstract": values.check_types,
    "weak type": values.check_weak_type,
    "compiled": values.check_compiled,
    "bad input": values.check_bad_input,
    "purity": purity.check_purity,
    "mutation": purity.check_mutation,
    "parameters": programs.check_parameters,
    "programs": programs.check_programs,
    "jvp": derivatives.check_jvp,
    "transpose": derivatives.check_transpose,
    "second order": derivatives.check_second_order,
    "symbolic zeros": derivatives.check_zeros,
    "batching": batching.check_batching,
    "nested batching": batching.check_nested,
    "effects": consistency.check_effects,
    "expected": consistency.check_expected,
    "expansion": consistency.check_expansion,
    "dead code": consistency.check_dead_code,
    "saved values": consistency.check_saved,
}

OPTIONAL: Final[set[str]] = {"expected", "expansion", "dead code", "saved values"}
"""Checks of what few primitives have. They do not count for the share that applies to one."""


DOUBLE: Final[set[str]] = {"jvp", "transpose", "second order", "symbolic zeros"}
"""Checks in double precision."""


def add_check(name: str, check: Check, *, optional: bool = True, double: bool = False) -> None:
    """Add a check to the kit: an interpreter's comparison of its rules with the primitive.

    Args:
      name: the name of the check, for reports, ``checks=`` and `Sample.without`.
      check: takes a function ``get``, which returns the sample's call with drawn values. It raises
        `Failure`, or `NotApplicable` with the reason.
      optional: most primitives have nothing to check.
      double: the check runs in double precision, and calls ``get(double=True)``.

    Returns:
      ``None``.

    Raises:
      ValueError: another check has the name.

    >>> def check_repetition(get):
    ...     call = get()
    ...     for a, b in zip(call.fun(*call.args), call.fun(*call.args)):
    ...         if a.tobytes() != b.tobytes():
    ...             raise Failure("two calls differ")
    >>> add_check("repetition", check_repetition)
    >>> from primax_core.lax import sin_p
    >>> from primax_core.testing import check_primitive
    >>> check_primitive(sin_p, checks=["repetition"]).ok
    True
    >>> del CHECKS["repetition"]
    """
    if CHECKS.setdefault(name, check) is not check:
        raise ValueError(f"the kit has another check {name!r}")
    if optional:
        OPTIONAL.add(name)
    if double:
        DOUBLE.add(name)
