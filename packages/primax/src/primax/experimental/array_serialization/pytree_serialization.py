"""Trees in folders: ``primax_distributed.array_serialization.pytree_serialization``.

This file is for type checkers; an import returns the wheel's module itself.
"""

from primax_distributed.array_serialization.pytree_serialization import *
