"""Functions under the settings that refuse implicit promotion, and under checked jaxprs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from primax_core import (
    enable_checks,
    make_jaxpr,
    numpy_dtype_promotion,
    numpy_rank_promotion,
    tree,
    vjp,
    vmap,
)
from primax_core.extend import dtypes

from .cases import Case, fixing

SETTINGS: Final = MappingProxyType(
    {
        "strict": lambda: numpy_dtype_promotion("strict"),
        "raise": lambda: numpy_rank_promotion("raise"),
        "checks": lambda: enable_checks(True),
    }
)
"""Settings without effect on a function that converts its operands explicitly."""


def check_settings(case: Case, module: Any, refused: Any = MappingProxyType({})) -> None:
    """Check that a case has the same jaxpr under each setting as without it.

    The jaxprs of the function, of its ``vmap`` and of its ``vjp`` are compared. Functions of
    concrete values are compared by their results. A case with operands of several dtypes or ranks
    may be refused by the setting that concerns them, with its own error.

    Args:
      refused: settings that refuse a case, by the name of its function.
    """
    for form, run in _forms(case, module):
        expected = run()
        for setting, context in SETTINGS.items():
            try:
                with context():
                    actual = run()
            except ValueError as error:
                mixed = mixes(case, setting) or setting in refused.get(case.name, ())
                assert mixed and _OPTIONS[setting] in str(error), (form, setting, case, error)
            else:
                assert actual == expected, (form, setting, case)


def check_call(fun: Callable[..., Any], *args: Any) -> None:
    """Check that a call has the same jaxpr under each setting as without it."""
    expected = _jaxpr(fun, args)
    for setting, context in SETTINGS.items():
        with context():
            actual = _jaxpr(fun, args)
        assert actual == expected, setting


_OPTIONS: Final = {
    "strict": "numpy_dtype_promotion=strict",
    "raise": "numpy_rank_promotion='raise'",
    "checks": "enable_checks",
}


def mixes(case: Case, setting: str) -> bool:
    """Return True if the operands of a case need the promotion that a setting refuses."""
    values = [v for v in tree.leaves((case.draw(), case.params)) if _is_number(v)]
    arrays = [v for v in values if isinstance(v, (np.ndarray, np.generic))]
    if setting == "raise":
        return len({a.ndim for a in arrays if a.ndim}) > 1
    if setting == "strict":
        # A Python float cannot be combined with integers, nor a complex number with floats.
        kinds = {type(v) for v in values if isinstance(v, (float, complex))}
        weak = {np.dtype(k) for k in kinds if k in (float, complex)}
        exact = {a.dtype for a in arrays if not dtypes.issubdtype(a.dtype, np.inexact)}
        return len({a.dtype for a in arrays}) > 1 or bool(weak and (exact or len(weak) > 1))
    return False


def _is_number(v: Any) -> bool:
    return isinstance(v, (np.ndarray, np.generic, float, complex))


def _forms(case: Case, module: Any) -> Iterator[tuple[str, Callable[[], Any]]]:
    args, at = case.draw(), case.positions()
    fun, some = fixing(case.on(module), args, at), [args[i] for i in at]
    if not case.compiled:
        yield "result", lambda: _values(fun(*some))
        return
    yield "jaxpr", lambda: _jaxpr(fun, some)
    if case.batched and at:
        stacked = [tree.map(_doubled, x) for x in some]
        axes = tuple([tree.map(_axis, x) for x in some])
        yield "vmap", lambda: _jaxpr(vmap(fun, axes), stacked)
    if by := case.differentiated():
        smooth = fixing(lambda *xs: _only_inexact(case.on(module)(*xs)), args, by)
        yield "vjp", lambda: _jaxpr(_pulled_back(smooth), [args[i] for i in by])


def _doubled(x: Any) -> Any:
    return np.stack([x, x]) if isinstance(x, (np.ndarray, np.generic)) else x


def _axis(x: Any) -> Any:
    return 0 if isinstance(x, (np.ndarray, np.generic)) else None


def _only_inexact(out: Any) -> list[Any]:
    return [y for y in tree.leaves(out) if dtypes.issubdtype(y.dtype, np.inexact)]


def _pulled_back(fun: Callable[..., Any]) -> Callable[..., Any]:
    def both(*xs: Any) -> Any:
        out, pull = vjp(fun, *xs)
        return pull(out)

    return both


def _jaxpr(fun: Callable[..., Any], args: Any) -> tuple[str, Any]:
    closed = make_jaxpr(fun)(*args)
    return str(closed), _values(closed.consts)


def _values(out: Any) -> list[Any]:
    """Results in a form that can be compared."""
    return [(str(y), getattr(y, "dtype", None)) for y in tree.leaves(out)]
