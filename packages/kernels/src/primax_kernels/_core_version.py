"""Checks at import that the installed core offers an extension API this wheel works with."""

from primax_core.extend import requires

requires("primax-kernels", since=(1, 5))
