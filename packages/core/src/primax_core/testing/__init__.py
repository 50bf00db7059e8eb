"""Checks of derivatives and of primitives. No test runner is needed.

:func:`check_grads` and related functions compare derivatives of a function with finite differences.
:func:`check_primitive` checks all rules of a primitive on its samples;
``primax_core.testing.pytest`` creates pytest tests from it.
"""

from .._ir.samples import Operand as Operand
from .._ir.samples import Sample as Sample
from .calls import Call as Call
from .calls import Failure as Failure
from .calls import NotApplicable as NotApplicable
from .checks import CHECKS as CHECKS
from .checks import add_check as add_check
from .conformance import cases as cases
from .conformance import check_primitive as check_primitive
from .conformance import check_sample as check_sample
from .conformance import find_primitive as find_primitive
from .conformance import primitives_of as primitives_of
from .gradients import check_grads as check_grads
from .gradients import check_jvp as check_jvp
from .gradients import check_vjp as check_vjp
from .gradients import numerical_jvp as numerical_jvp
from .gradients import random_tangent as random_tangent
from .tolerance import mismatches as mismatches
from .verdicts import Report as Report
from .verdicts import Verdict as Verdict
