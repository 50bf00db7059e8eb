"""Effects of programs."""

from primax_core.extend import Effect as Effect
