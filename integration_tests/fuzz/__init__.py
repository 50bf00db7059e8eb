"""Fuzzers: random inputs, in processes that may crash without harm.

Each fuzzer is a module with a class ``Fuzzer(folder, seed)``. Its method ``attempt(n)`` makes input
number ``n`` and returns a description of the fault, or ``None``. An input is a function of the seed
and its number, so a fault can be repeated: ``python -m integration_tests.fuzz --only calls --seed 3
--first 1234 --calls 1``.

`harness` runs fuzzers in worker processes (`worker`). A worker that crashes, or spends too long on
one input, is replaced, and the input is counted as an abort or a hang.

- `artifacts`: mutated artifacts of ``export``, and modules that were crafted to crash XLA
- `cache_files`: mutated files of the cache of executables
- `calls`: public functions with odd arguments; errors from inside (`AttributeError`) are faults
- `indices`: indexing and indexed updates, compared with NumPy
- `programs`: random programs and their derivatives, compared with jax if it is installed, otherwise
  with other transformations of the same program. `program_generator` makes them from statements
  (`program_statements`, `program_blocks`) as data (`program_source`), which two processes run as
  Python source (`program_runner`). A program that fails is shrunk and printed.

A new fuzzer is a new module here and a line in `harness.FUZZERS`. ``test_fuzzers.py`` runs some
inputs of each, another part for each commit; ``nox -s fuzz -- --calls 100000`` runs many.
"""
