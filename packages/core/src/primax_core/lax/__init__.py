"""Primitives: one page for each, or for a family, with all that is known about it."""

from . import broadcasting as broadcasting
from . import permuting as permuting
from . import reducing as reducing
