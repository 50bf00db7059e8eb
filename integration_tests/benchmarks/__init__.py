"""Benchmarks against jax: ``nox -s bench``, or ``python -m integration_tests.benchmarks``."""
