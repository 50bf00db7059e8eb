"""Tracing: the current trace, tracers, and the construction of jaxprs."""
