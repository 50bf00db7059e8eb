"""Resizing and warping of images: the module ``primax_numpy.image``.

This file is for type checkers; an import returns the wheel's module itself.
"""

from primax_numpy.image import *
