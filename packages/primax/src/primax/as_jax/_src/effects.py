"""Effects of jaxprs."""

from primax._adapters.effect_sets import lowerable_effects as lowerable_effects
from primax_core.extend import Effect as Effect
