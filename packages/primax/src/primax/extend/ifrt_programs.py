"""Programs and compile options of jaxlib's runtime: the reference's ``jax.extend.ifrt_programs``.

A client compiles such a program with ``client.compile_ifrt_program(program, options)``. The clients
of CPUs and GPUs take HLO programs; they refuse plugin programs with ``INVALID_ARGUMENT``.
"""

from __future__ import annotations

from importlib import import_module as _import_module
from typing import Any

ifrt_programs: Any = _import_module("jaxlib._jax").ifrt_programs
