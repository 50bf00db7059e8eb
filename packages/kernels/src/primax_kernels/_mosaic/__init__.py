"""Kernels as text in the dialects of Mosaic, which the TPU's compiler compiles."""
