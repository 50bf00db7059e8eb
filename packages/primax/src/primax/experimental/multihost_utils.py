"""Values of several processes: the module ``primax_distributed.multihost_utils``.

This file is for type checkers; an import returns the wheel's module itself.
"""

from primax_distributed.multihost_utils import *
