"""Libraries written for JAX, unmodified, on Primax and on the real jax: outcomes and times.

``python -m integration_tests.ecosystem --ours PYTHON --theirs PYTHON`` runs the test suites that
some libraries ship inside their wheels, and a short real program for each of the others, in turn
here and there, and compares. See ``docs/compatibility.md``.
"""
