"""Tracing: the current trace, tracers, and programs built by running functions on them."""
