"""Taylor mode: derivatives of all orders along a curve: the module ``primax_interpreters.jet``.

Type checkers read this file; an import gives the wheel's module itself.
"""

from primax_interpreters.jet import *
