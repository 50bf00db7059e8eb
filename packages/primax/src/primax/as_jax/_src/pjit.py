"""The ``jit`` primitive and compiled calls."""

from primax.extend.core.primitives import jit_p as jit_p
from primax_core import jit

pjit = jit
pjit_p = jit_p
