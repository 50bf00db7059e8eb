"""The checks of the conformance kit, by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ..calls import Call
from . import batching, derivatives, programs, purity, values

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
}
