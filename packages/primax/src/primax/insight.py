"""Reports on what functions cost: the module ``primax_interpreters.insight``.

Type checkers read this file; an import gives the wheel's module itself.
"""

from primax_interpreters.insight import *
