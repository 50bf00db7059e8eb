"""Lowering: jaxprs to StableHLO modules and executables."""
