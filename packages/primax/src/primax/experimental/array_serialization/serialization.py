"""Arrays in tensorstore: ``primax_distributed.array_serialization.serialization``.

This file is for type checkers; an import returns the wheel's module itself.
"""

from primax_distributed.array_serialization.serialization import *
