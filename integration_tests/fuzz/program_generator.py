"""Random programs: statements are drawn, and kept if Primax can type them."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import primax

from . import program_source as ps
from .program_source import Block, Program, Statement, Var

SHAPES = ((), (1,), (3,), (3,), (4,), (2, 3), (3, 3), (3, 1), (2, 3, 2), (0, 3))
LARGEST = 400


@dataclass
class Draft:
    """A statement before its results are typed."""

    code: str
    count: int = 1
    blocks: list[Block] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)


@dataclass
class Scope:
    """Variables that a statement can use."""

    rng: random.Random
    names: list[int]
    variables: list[Var] = field(default_factory=list)
    outer: list[Var] = field(default_factory=list)
    axes: dict[str, int] = field(default_factory=dict)
    depth: int = 0

    def new_name(self, letter: str = "v") -> str:
        """A name that no other variable has."""
        self.names[0] += 1
        return f"{letter}{self.names[0]}"

    def matching(self, accept: Callable[[Var], bool]) -> Var | None:
        """A variable that is accepted, of this function rather than of an outer one."""
        own = [v for v in self.variables if accept(v)]
        closed = [v for v in self.outer if accept(v)]
        if closed and (not own or self.rng.random() < 0.2):
            return self.rng.choice(closed)
        if not own:
            return None
        late = own[-4:]
        return self.rng.choice(late if self.rng.random() < 0.6 else own)

    def any(self) -> str:
        """A variable of any type."""
        return self.need(lambda v: True).name

    def need(self, accept: Callable[[Var], bool]) -> Var:
        """A variable that is accepted; a constant otherwise."""
        v = self.matching(accept)
        if v is None:
            raise NoVariable
        return v

    def real(self, rank: int = 0) -> Var:
        """A variable of real floating-point type, with at least ``rank`` axes."""
        return self.need(lambda v: is_float(v) and len(v.shape) >= rank)

    def inexact(self, rank: int = 0) -> Var:
        """A variable of real or complex floating-point type."""
        return self.need(
            lambda v: (is_float(v) or v.dtype.startswith("complex")) and len(v.shape) >= rank
        )

    def array(self, rank: int = 1) -> Var:
        """A variable with at least ``rank`` axes."""
        return self.need(lambda v: len(v.shape) >= rank)

    def integer(self) -> Var:
        """A variable of integer type."""
        return self.need(lambda v: "int" in v.dtype)

    def operand(self) -> str:
        """A variable or a Python scalar."""
        if self.rng.random() < 0.2:
            return self.rng.choice(("2", "0.5", "-1.5", "3", "True", "np.float32(0.7)"))
        return self.any()


class NoVariable(Exception):
    """No variable has the type that a statement needs."""


def is_float(v: Var) -> bool:
    """True if a variable is real with derivatives."""
    return "float" in v.dtype


def typed(scope: Scope, draft: Draft) -> Statement | None:
    """The statement with the types of its results; None if Primax refuses it."""
    names = [scope.new_name() for _ in range(draft.count)]
    blank = tuple(Var(name, (), "") for name in names)
    statement = Statement(blank, draft.code, tuple(draft.blocks), tuple(draft.lines))
    visible = [*scope.outer, *scope.variables]
    try:
        results = _abstract(statement, visible, scope.axes)
    except NoVariable:
        raise
    except Exception:
        return None
    if len(results) != draft.count:
        return None
    out = []
    for name, x in zip(names, results, strict=True):
        if not hasattr(x, "shape") or int(np.prod(x.shape)) > LARGEST:
            return None
        shape = x.shape[len(scope.axes) :]
        out.append(Var(name, tuple(shape), x.dtype.name, bool(x.weak_type)))
    return Statement(tuple(out), draft.code, statement.blocks, statement.lines)


def _abstract(statement: Statement, visible: list[Var], axes: dict[str, int]) -> list[Any]:
    names = [v.name for v in visible]
    lines = ps.statement_lines(statement)
    results = ", ".join(v.name for v in statement.out)
    text = [f"def f({', '.join(names)}):", *("    " + x for x in lines), f"    return {results},"]
    text = "\n".join(text)
    namespace = dict(_BASE)
    exec(compile(text, "<program>", "exec"), namespace)
    fun = namespace["f"]
    for name, size in axes.items():
        fun = primax.vmap(fun, in_axes=None, axis_name=name, axis_size=size)
    avals = [
        primax.ShapeDtypeStruct(v.shape, primax.numpy.dtype(v.dtype), weak_type=v.weak)
        for v in visible
    ]
    return list(primax.eval_shape(fun, *avals))


def _base() -> dict[str, Any]:
    namespace: dict[str, Any] = {}
    text = ps.PRELUDE.format(package="primax", x64="jax.config.jax_enable_x64")
    exec(compile(text, "<prelude>", "exec"), namespace)
    return namespace


_BASE = _base()


def grow(scope: Scope, count: int, drafts: list[tuple[Callable, float]]) -> list[Statement]:
    """Up to ``count`` statements of a function."""
    body: list[Statement] = []
    makers, weights = zip(*drafts, strict=True)
    for _ in range(4 * count):
        if len(body) == count:
            break
        maker = scope.rng.choices(makers, weights)[0]
        try:
            draft = maker(scope)
        except NoVariable:
            continue
        statement = typed(scope, draft) if draft is not None else None
        if statement is not None:
            body.append(statement)
            scope.variables += statement.out
    return body


def literal(rng: random.Random, shape: tuple[int, ...], dtype: str) -> str:
    """NumPy code of an array with random elements, sometimes with ties or special values."""
    n = int(np.prod(shape))
    style = rng.random()
    if dtype == "bool":
        values: list[Any] = [rng.random() < 0.5 for _ in range(n)]
    elif "int" in dtype:
        low = 0 if dtype.startswith("u") else -4
        values = [rng.randrange(low, 5) for _ in range(n)]
    elif style < 0.85:
        values = [round(rng.uniform(-2, 2), 3) for _ in range(n)]
    elif style < 0.93:
        values = [rng.choice((0.5, 1.0, -1.0, 2.0)) for _ in range(n)]
    else:
        values = [rng.choice((0.0, -0.0, 1.0, float("inf"), float("nan"))) for _ in range(n)]
    if dtype.startswith("complex"):
        values = [complex(v, round(rng.uniform(-2, 2), 3)) for v in values]
    text = repr(values).replace("nan", "np.nan").replace("inf", "np.inf")
    kind = "jnp.bfloat16" if dtype == "bfloat16" else f"np.{dtype.replace('bool', 'bool_')}"
    return f"np.array({text}, {kind}).reshape({shape})"


def generate(rng: random.Random) -> Program:
    """A random program."""
    from .program_blocks import BLOCKS
    from .program_statements import STATEMENTS

    x64 = rng.random() < 0.5
    plain = ("float64", "float64", "complex128") if x64 else ("float32", "float32", "complex64")
    others = ("int32", "bool", "float16", "bfloat16", "int8", "uint8", "uint32", "float32")
    scope = Scope(rng, [0])
    inputs = []
    for i in range(rng.randrange(1, 5)):
        dtype = rng.choice(plain[:2]) if i == 0 or rng.random() < 0.6 else rng.choice(others)
        if rng.random() < 0.05:
            dtype = plain[2]
        v = Var(scope.new_name("x"), rng.choice(SHAPES), dtype)
        inputs.append((v, literal(rng, v.shape, dtype)))
        scope.variables.append(v)
    names = ["value", *rng.sample(list(ps.MODES)[1:], 2)]
    modes = ["jit:" * (rng.random() < 0.6) + name for name in names]
    primax.config.update("jax_enable_x64", x64)
    body = grow(scope, rng.randrange(2, 7), [*STATEMENTS, *BLOCKS])
    return Program(tuple(inputs), tuple(body), x64, tuple(modes))
