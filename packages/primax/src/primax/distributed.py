"""Several processes: the module ``primax_distributed.processes``.

This file is for type checkers; an import returns the wheel's module itself.
"""

from primax_distributed.processes import *
