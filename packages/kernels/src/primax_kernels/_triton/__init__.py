"""Kernels as text in Triton's intermediate language, compiled by XLA for GPUs."""
