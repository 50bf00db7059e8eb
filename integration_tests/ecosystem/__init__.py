"""Outcomes and times of unmodified libraries written for JAX, on Primax and on the real jax.

``python -m integration_tests.ecosystem --ours PYTHON --theirs PYTHON`` alternates between both
sides. It runs the test suites that some libraries ship in their wheels, and a short program for
each other library, and compares. See ``docs/compatibility.md``.
"""
