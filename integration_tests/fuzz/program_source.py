"""Random programs as plain data, and their Python source.

A program is a list of `Statement`; a statement may define functions (`Block`), which are lists of
statements too. `source` writes a program for Primax or for the reference: both run the same text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

PRELUDE = '''\
import numpy as np
import {package} as jax
from {package}.ad_checkpoint import checkpoint_name
jnp, lax = jax.numpy, jax.lax
jax.config.update("jax_enable_x64", {x64})


def hook(a, b, dimension_numbers, precision=None, preferred_element_type=None, **options):
    return lax.dot_general(a, b, dimension_numbers, precision, preferred_element_type) * 1


def weights(x, k):
    return np.cos(np.arange(x.size) + k).reshape(x.shape).astype(x.real.dtype)


def loss(*xs):
    """A real number that depends on all results with derivatives."""
    total = 0.0
    for k, x in enumerate(jax.tree.leaves(program(*xs))):
        if jnp.issubdtype(x.dtype, jnp.inexact):
            total = total + jnp.sum(jnp.real(x) * weights(x, k)).astype(float)
            if jnp.iscomplexobj(x):
                total = total + jnp.sum(jnp.imag(x)).astype(float)
    return total


def without_jit(fun):
    def called(*xs):
        with jax.disable_jit():
            return fun(*xs)

    return called


def on_floats(fun):
    """``fun`` as a function of the arguments that have derivatives."""

    def of_floats(*xs):
        arguments = list(inputs)
        for i, x in zip(floats, xs):
            arguments[i] = x
        return fun(*arguments)

    return of_floats
'''

EPILOGUE = """\
inputs = tuple(map(jnp.asarray, inputs))
floats = [i for i, x in enumerate(inputs) if jnp.issubdtype(x.dtype, jnp.inexact)]
points = tuple(inputs[i] for i in floats)
directions = tuple(weights(x, 1).astype(x.dtype) for x in points)
batches = tuple(jnp.stack([x, x[::-1] if x.ndim else x]) for x in inputs)
f, g = on_floats(program), on_floats(loss)
every = tuple(range(len(floats)))
moved = tuple(batches[i] for i in floats)


def slope(*xs):
    gradients = jax.grad(g, every)(*xs)
    return sum(jnp.sum(jnp.real(y) * weights(y, 2)).astype(float) for y in gradients)
"""

# Ways to run a program: a function and its arguments, in the names above.
MODES = {
    "value": ("program", "*inputs"),
    "grad": ("jax.grad(g, every)", "*points"),
    "jvp": ("lambda p, t: jax.jvp(f, p, t)", "points, directions"),
    "linearize": ("lambda p, t: jax.linearize(f, *p)[1](*t)", "points, directions"),
    "transpose": (
        "lambda *p: jax.linear_transpose(jax.linearize(g, *p)[1], *p)(jnp.ones((), g(*p).dtype))",
        "*points",
    ),
    "vmap": ("jax.vmap(program)", "*batches"),
    "vmap_grad": ("jax.vmap(jax.grad(loss, floats))", "*batches"),
    "grad_vmap": ("jax.grad(lambda *xs: jnp.sum(jax.vmap(loss)(*xs)), floats)", "*batches"),
    "vmap_jvp": ("jax.vmap(lambda p, t: jax.jvp(g, p, t))", "moved, moved"),
    "hvp": ("lambda p, t: jax.jvp(jax.grad(g, every), p, t)", "points, directions"),
    "grad_grad": ("jax.grad(lambda *p: slope(*p), every)", "*points"),
    "remat_grad": ("jax.grad(jax.checkpoint(g), every)", "*points"),
    "jacfwd": ("jax.jacfwd(g, every)", "*points"),
    "jit_inside": ("jax.grad(jax.jit(g), every)", "*points"),
}


def expression(mode: str, compiled: bool = False) -> str:
    """The expression of a mode; those that begin with ``jit:`` are compiled."""
    function, arguments = MODES[mode.removeprefix("jit:")]
    compiled = compiled or mode.startswith("jit:")
    return f"jax.jit({function})({arguments})" if compiled else f"({function})({arguments})"


@dataclass(frozen=True)
class Var:
    """A variable and its type."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    weak: bool = False

    @property
    def type(self) -> tuple[tuple[int, ...], str]:
        """Shape and dtype."""
        return self.shape, self.dtype


@dataclass(frozen=True)
class Block:
    """A function of a statement."""

    name: str
    params: tuple[str, ...]
    body: tuple[Statement, ...]
    result: str
    decorator: str = ""


@dataclass(frozen=True)
class Statement:
    """An assignment, with functions and lines that come before it."""

    out: tuple[Var, ...]
    code: str
    blocks: tuple[Block, ...] = ()
    lines: tuple[str, ...] = ()


@dataclass(frozen=True)
class Program:
    """Statements over inputs; the results are all variables of the outer level."""

    inputs: tuple[tuple[Var, str], ...]
    body: tuple[Statement, ...]
    x64: bool = False
    modes: tuple[str, ...] = field(default=("jit:value",))

    @property
    def results(self) -> list[str]:
        """Names of the results."""
        names = [v.name for s in self.body for v in s.out]
        return names or [v.name for v, _ in self.inputs]


def _indent(lines: list[str]) -> list[str]:
    return ["    " + line for line in lines]


def statement_lines(statement: Statement) -> list[str]:
    """The lines of a statement."""
    lines: list[str] = []
    for block in statement.blocks:
        if block.decorator:
            lines.append(block.decorator)
        lines.append(f"def {block.name}({', '.join(block.params)}):")
        lines += _indent(body_lines(block.body))
        lines.append(f"    return {block.result}")
    lines += statement.lines
    target = ", ".join(v.name for v in statement.out)
    return [*lines, f"{target} = {statement.code}"]


def body_lines(body: tuple[Statement, ...]) -> list[str]:
    """The lines of several statements."""
    return [line for s in body for line in statement_lines(s)]


def source(program: Program, package: str) -> str:
    """The module that defines ``program`` and the names that `MODES` uses."""
    params = ", ".join(v.name for v, _ in program.inputs)
    lines = [f"def program({params}):", *_indent(body_lines(program.body))]
    lines.append(f"    return ({', '.join(program.results)},)")
    lines += ["", "", "inputs = ("]
    lines += [f"    {code}," for _, code in program.inputs]
    prelude = PRELUDE.format(package=package, x64=program.x64)
    return "\n".join([prelude, "", *lines, ")", EPILOGUE])


def smaller(program: Program) -> Iterator[Program]:
    """Programs with one statement less, the last statements first."""
    for body in _smaller(program.body, [v for v, _ in program.inputs]):
        yield replace(program, body=body)


def _smaller(body: tuple[Statement, ...], visible: list[Var]) -> Iterator[tuple[Statement, ...]]:
    for i in reversed(range(len(body))):
        before = [*visible, *(v for s in body[:i] for v in s.out)]
        rest = body[i + 1 :]
        names = {v.name: _substitute(v, before) for v in body[i].out}
        yield (*body[:i], *(_renamed(s, names) for s in rest))
    for i in reversed(range(len(body))):
        s = body[i]
        before = [*visible, *(v for t in body[:i] for v in t.out)]
        for k, block in enumerate(s.blocks):
            inner = [v for v in before if v.name not in block.params]
            for smaller_body in _smaller(block.body, inner):
                names = _missing(block, smaller_body, inner)
                changed = replace(block, body=smaller_body, result=_rename(block.result, names))
                blocks = (*s.blocks[:k], changed, *s.blocks[k + 1 :])
                yield (*body[:i], replace(s, blocks=blocks), *body[i + 1 :])


def _missing(block: Block, body: tuple[Statement, ...], visible: list[Var]) -> dict[str, str]:
    kept = {v.name for s in body for v in s.out}
    lost = [v for s in block.body for v in s.out if v.name not in kept]
    inside = [v for s in body for v in s.out]
    return {v.name: _substitute(v, [*visible, *inside]) for v in lost}


def _substitute(lost: Var, others: list[Var]) -> str:
    """Another variable of the same type, or a constant."""
    for v in reversed(others):
        if v.type == lost.type and v.weak == lost.weak:
            return v.name
    return f"jnp.full({lost.shape}, 1, {lost.dtype!r})"


def _rename(text: str, names: dict[str, str]) -> str:
    for old, new in names.items():
        text = re.sub(rf"\b{old}\b", new, text)
    return text


def _renamed(s: Statement, names: dict[str, str]) -> Statement:
    blocks = tuple(
        replace(
            b,
            body=tuple(_renamed(t, names) for t in b.body),
            result=_rename(b.result, names),
        )
        for b in s.blocks
    )
    lines = tuple(_rename(line, names) for line in s.lines)
    return replace(s, code=_rename(s.code, names), blocks=blocks, lines=lines)
