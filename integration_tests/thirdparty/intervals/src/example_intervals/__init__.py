"""Interval arithmetic: an example of a third-party interpreter with its own rule kind.

>>> import numpy as np
>>> from primax_core import lax
>>> bounds(lambda x: x * x - x)(Interval(np.float32(0), np.float32(1)))
Interval(low=Array(-1., dtype=float32), high=Array(1., dtype=float32))
"""

from .intervals import Interval as Interval
from .intervals import bounds as bounds
from .intervals import interval as interval
from . import arithmetic as arithmetic
from . import control as control
from . import structure as structure
