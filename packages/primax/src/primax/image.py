"""Images: other sizes and places: the module ``primax_numpy.image``.

Type checkers read this file; an import gives the wheel's module itself.
"""

from primax_numpy.image import *
