"""Transformations: forward mode, linearization, transposition, batching."""
