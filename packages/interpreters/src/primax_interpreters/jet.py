"""Taylor mode: derivatives of all orders along a curve."""

from ._jet.api import (
    def_comp as def_comp,
    def_deriv as def_deriv,
    deflinear as deflinear,
    defzero as defzero,
    fact as fact,
    jet as jet,
)
