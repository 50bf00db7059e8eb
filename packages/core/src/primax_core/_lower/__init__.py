"""Lowering: jaxprs to StableHLO, and on to executables."""
