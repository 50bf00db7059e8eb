"""Helpers with which ``lax`` defines its elementwise and linear primitives and converts operands.

The rules that they register handle symbolic sizes, weak types and broadcasting under ``vmap``.
"""

from __future__ import annotations

from .._trace.core import argument_type as argument_type
from ..lax.elementwise import (
    binary as binary,
    check_dtypes as check_dtypes,
    derivatives as derivatives,
    elementwise as elementwise,
    elementwise_batching as elementwise_batching,
    elementwise_lowering as elementwise_lowering,
    elementwise_samples as elementwise_samples,
    full_of as full_of,
    joint_shape as joint_shape,
    linear as linear,
    no_derivative as no_derivative,
    same_dtypes as same_dtypes,
    scalar_like as scalar_like,
    sum_to as sum_to,
    to_shape as to_shape,
    unary as unary,
)
from ..lax.promotion import (
    any_number as any_number,
    cast as cast,
    inexact as inexact,
    is_operand as is_operand,
    promoted as promoted,
    same_rank as same_rank,
)
