"""Orders of devices in meshes: the module ``primax_distributed.mesh_utils``.

This file is for type checkers; an import returns the wheel's module itself.
"""

from primax_distributed.mesh_utils import *
