"""Random programs: values and derivatives, compared with the reference if it is installed.

The variable ``PRIMAX_FUZZ_REFERENCE`` is the Python whose ``jax`` is the reference. Without it, a
program is run eagerly, under ``jit``, under ``disable_jit`` and batched, and derivatives in forward
mode are compared with those in reverse mode.
"""

from __future__ import annotations

import json
import os
import random
import select
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from . import program_compare as compare, program_runner as runner, program_source as ps
from .program_generator import generate
from .program_source import Program

LONGEST = 60.0
SHRINKING = 25.0
CACHE_OF_THE_REFERENCE = {
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
}
# Evaluations that agree without the reference: an expression, and the one that it repeats.
_GRADIENT = "jax.grad(g, every)(*points)"
_SLOPE = f"sum(jnp.sum(jnp.real(c * d).astype(float)) for c, d in zip({_GRADIENT}, directions))"
ALONE = {
    "jit": ("jax.jit(program)(*inputs)", "program(*inputs)"),
    "disable_jit": ("without_jit(program)(*inputs)", "program(*inputs)"),
    "vmap": (
        "jax.tree.map(lambda x: x[0], jax.vmap(program)(*(x[None] for x in inputs)))",
        "program(*inputs)",
    ),
    "jit_grad": ("jax.jit(jax.grad(g, every))(*points)", _GRADIENT),
    "remat_grad": ("jax.grad(jax.checkpoint(g), every)(*points)", _GRADIENT),
    "vmap_grad": (
        "tuple(x[0] for x in jax.vmap(jax.grad(g, every))(*(p[None] for p in points)))",
        _GRADIENT,
    ),
    "jit_hvp": (
        "jax.jit(lambda p, t: jax.jvp(jax.grad(g, every), p, t))(points, directions)",
        "jax.jvp(jax.grad(g, every), points, directions)",
    ),
    "jvp": ("jax.jvp(g, points, directions)[1]", _SLOPE),
}


class Ended(Exception):
    """The reference crashed, or spent too long on a program."""


class Reference:
    """A process that runs programs in the reference."""

    def __init__(self, python: str, folder: Path):
        self.python = python
        self.folder = folder
        self.process: subprocess.Popen[str] | None = None

    def run(self, source: str, modes: dict[str, str], disturb: float = 0.0) -> dict[str, Any]:
        """The answers of the reference."""
        if self.process is None:
            self._start()
        assert self.process is not None and self.process.stdin and self.process.stdout
        request = {"source": source, "modes": modes, "disturb": disturb}
        try:
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
            ready, _, _ = select.select([self.process.stdout], [], [], LONGEST)
            line = self.process.stdout.readline() if ready else ""
        except BrokenPipeError:
            line = ""
        if line:
            return json.loads(line)
        self.process.kill()
        code = self.process.wait()
        self.process = None
        raise Ended("hangs" if code == -9 else f"ended with {code}")

    def _start(self) -> None:
        environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", **CACHE_OF_THE_REFERENCE}
        environment["JAX_COMPILATION_CACHE_DIR"] = str(self.folder / "reference")
        environment.pop("PYTHONPATH", None)
        self.process = subprocess.Popen(
            [self.python, str(Path(runner.__file__)), "jax"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            text=True, env=environment,
        )  # fmt: skip


class Fuzzer:
    """Programs that two implementations, or several transformations, evaluate."""

    def __init__(self, folder: Path, seed: int):
        self.seed = seed
        python = os.environ.get("PRIMAX_FUZZ_REFERENCE")
        self.reference = Reference(python, folder) if python else None

    def program(self, n: int) -> Program:
        """Program number ``n``."""
        rng = random.Random(f"programs {self.seed} {n}")
        program = generate(rng)
        if self.reference is None:
            program = replace(program, modes=tuple(rng.sample(list(ALONE), 2)))
        return program

    def describe(self, n: int) -> str:
        """The source of program ``n``."""
        return ps.source(self.program(n), "primax")

    def attempt(self, n: int) -> str | None:
        """Run one program; the fault contains a shrunk program."""
        program = self.program(n)
        try:
            problem = self.problem(program)
        except Ended as e:
            return f"the reference {e}"
        if problem is None:
            return None
        mode, _ = problem
        program, problem = self.shrunk(replace(program, modes=(mode,)), problem)
        text = ps.source(program, "primax")
        expression = ps.expression(mode) if self.reference else ALONE[mode][0]
        return f"{mode}: {problem[1]}\n{text}\nprint({expression})"

    def problem(self, program: Program) -> tuple[str, str] | None:
        """The mode that fails, and how."""
        width = narrowest(program)
        if self.reference is None:
            return _inconsistent(program, width)
        modes = {name: ps.expression(name) for name in program.modes}
        compiled = {name: ps.expression(name, compiled=True) for name in program.modes}
        ours = runner.run(ps.source(program, "primax"), modes)
        theirs = self.reference.run(ps.source(program, "jax"), compiled)
        for name in modes:
            weak = name.endswith("value")
            difference = compare.differs(ours[name], theirs[name], width, weak)
            if difference is None:
                continue
            by = compare.DISTURBANCES[width]
            one = {name: modes[name]}
            moved = runner.run(ps.source(program, "primax"), one, by)[name]
            if not compare.unstable(theirs[name], ours[name], moved, width):
                return name, difference
        return None

    def shrunk(self, program: Program, problem: tuple[str, str]) -> tuple[Program, tuple[str, str]]:
        """The program without statements that the failure does not need."""
        end = time.monotonic() + SHRINKING
        smaller = True
        while smaller:
            smaller = False
            for candidate in ps.smaller(program):
                if time.monotonic() > end:
                    return program, problem
                try:
                    now = self.problem(candidate)
                except Ended:
                    continue
                if now is not None and _kind(now[1]) == _kind(problem[1]):
                    program, problem, smaller = candidate, now, True
                    break
        return program, problem


def _kind(problem: str) -> str:
    words = problem.split(": ")
    return words[1].split(" ")[0] if words[0].startswith("result") else problem[:40]


def narrowest(program: Program) -> str:
    """The least precise floating-point type of a program."""
    text = ps.source(program, "primax")
    found = [v.dtype for v, _ in program.inputs]
    for name in ("bfloat16", "float16"):
        if name in found or f"jnp.{name}" in text:
            return name
    return (
        "float64"
        if program.x64 and "float32" not in text and "complex64" not in text
        else "float32"
    )


def _inconsistent(program: Program, width: str) -> tuple[str, str] | None:
    text = ps.source(program, "primax")
    for name in program.modes:
        expression, repeated = ALONE[name]
        both = runner.run(text, {"ours": expression, "base": repeated})
        ours, base = both["ours"], both["base"]
        if "error" in base or "error" in ours:
            continue
        difference = compare.differs(ours, base, width, weak=False)
        if difference is None:
            continue
        moved = runner.run(text, {"base": repeated}, compare.DISTURBANCES[width])["base"]
        if not compare.unstable(ours, base, moved, width):
            return name, difference
    return None


if __name__ == "__main__":
    fuzzer = Fuzzer(Path("."), int(sys.argv[1]))
    for number in map(int, sys.argv[2:]):
        print(fuzzer.attempt(number))
