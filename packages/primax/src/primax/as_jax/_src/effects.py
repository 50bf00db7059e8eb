"""Effects of jaxprs."""

from primax_core.extend import Effect as Effect
