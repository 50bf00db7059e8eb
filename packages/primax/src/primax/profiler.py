"""Profiles of the host and the devices: the module ``primax_interpreters.profiler``.

Type checkers read this file; an import gives the wheel's module itself.
"""

from primax_interpreters.profiler import *
