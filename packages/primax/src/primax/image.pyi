"""Images: other sizes and places: the module ``primax_numpy.image``."""

from primax_numpy.image import *
