"""Kernels as XLA programs: the expansion, which needs no backend of its own."""
