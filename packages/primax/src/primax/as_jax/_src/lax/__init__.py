"""Operations."""

from primax_core.lax import *
