"""Statements with functions: loops, conditionals, transformations, custom rules, references."""

from __future__ import annotations

from collections.abc import Callable

from .program_generator import Draft, NoVariable, Scope, Statement, grow, is_float
from .program_source import Block, Var
from .program_statements import STATEMENTS

DEEPEST = 3
POLICIES = (
    "", ", policy=jax.checkpoint_policies.dots_saveable", ", prevent_cse=False",
    ", policy=jax.checkpoint_policies.nothing_saveable",
    ", policy=jax.checkpoint_policies.everything_saveable",
    ", policy=jax.checkpoint_policies.dots_with_no_batch_dims_saveable",
)  # fmt: skip


def child(s: Scope, params: list[Var], axes: dict[str, int] | None = None) -> Scope:
    """The scope of a function; the outer variables are visible in most."""
    if s.depth >= DEEPEST:
        raise NoVariable
    closed = [*s.outer, *s.variables] if s.rng.random() < 0.7 else []
    return Scope(s.rng, s.names, list(params), closed, axes or dict(s.axes), s.depth + 1)


def body(inner: Scope) -> tuple[Statement, ...]:
    """Some statements."""
    drafts = [*STATEMENTS, *((maker, weight / 2**inner.depth) for maker, weight in BLOCKS)]
    return tuple(grow(inner, inner.rng.randrange(1, 4), drafts))


def param(s: Scope, like: Var) -> Var:
    """A parameter of this type."""
    return Var(s.new_name("a"), like.shape, like.dtype, like.weak)


def of_type(inner: Scope, wanted: Var) -> str:
    """An expression of a type, from the last variables."""
    dtype = f"jnp.{wanted.dtype.replace('bool', 'bool_')}"
    same = [v for v in inner.variables if v.type == wanted.type and not v.weak]
    if same and inner.rng.random() < 0.6:
        value = same[-1].name
        return f"jnp.tanh({value})" if is_float(wanted) and inner.rng.random() < 0.4 else value
    last = inner.variables[-1]
    value = last.name
    if last.dtype.startswith("complex") and not wanted.dtype.startswith("complex"):
        value = f"jnp.real({value})"
    if last.shape != wanted.shape:
        value = f"jnp.broadcast_to(jnp.sum({value}), {wanted.shape})"
    return f"lax.convert_element_type({value}, {dtype})"


def strong(v: Var) -> str:
    """The variable as an operand of a loop, whose carry keeps its type."""
    return f"jnp.asarray({v.name}, {v.name}.dtype)" if v.weak else v.name


def function(
    s: Scope, params: list[Var], wanted: list[Var] | None = None, letter: str = "f"
) -> tuple[Block, Scope]:
    """A function of some parameters, with results of the types ``wanted`` or any."""
    inner = child(s, params)
    statements = body(inner)
    if wanted is None:
        result = inner.variables[-1].name
    else:
        result = ", ".join(of_type(inner, v) for v in wanted)
    names = tuple(p.name for p in params)
    return Block(s.new_name(letter), names, statements, result), inner


def scan(s: Scope) -> Draft:
    """`scan`, with a carry, slices, or a length."""
    carry, xs = s.array(0), s.matching(lambda v: len(v.shape) > 0)
    c = Var(s.new_name("a"), carry.shape, carry.dtype)
    params = [c]
    options = s.rng.choice(("", "", ", reverse=True", ", unroll=2", ", unroll=True"))
    operand = "None"
    if xs is not None and s.rng.random() < 0.8:
        params.append(Var(s.new_name("a"), xs.shape[1:], xs.dtype, xs.weak))
        operand = xs.name
    else:
        options += f", length={s.rng.choice((0, 1, 2, 3))}"
    inner = child(s, params)
    statements = body(inner)
    y = s.rng.choice((inner.variables[-1].name, c.name, "None"))
    names = (*(p.name for p in params), *(() if operand != "None" else ("_",)))
    block = Block(s.new_name("f"), names, statements, f"{of_type(inner, c)}, {y}")
    code = f"lax.scan({block.name}, {strong(carry)}, {operand}{options})"
    if y == "None":
        return Draft(f"{code}[0]", 1, [block])
    return Draft(code, 2, [block])


def scan_of_pairs(s: Scope) -> Draft:
    """`scan` with a counter and several arrays."""
    carry, xs = s.inexact(), s.array(1)
    c, d = (Var(s.new_name("a"), carry.shape, carry.dtype) for _ in range(2))
    x = Var(s.new_name("a"), xs.shape[1:], xs.dtype, xs.weak)
    i = Var(s.new_name("i"), (), "int32")
    inner = child(s, [c, d, x, i])
    statements = body(inner)
    results = f"({i.name} + 1, {of_type(inner, c)}, {d.name} * 0.5 + {of_type(inner, d)})"
    block = Block(
        s.new_name("f"),
        ("carry", "x"),
        statements,
        f"{results}, {{'y': {inner.variables[-1].name}}}",
    )
    head = f"({i.name}, {c.name}, {d.name}), {x.name} = carry, x"
    block = _with_head(block, head, (i, c, d, x))
    init = f"(np.int32(0), {strong(carry)}, {strong(carry)} * 2)"
    after = f"{s.new_name('t')}"
    code = f"({after}[0][1], {after}[0][2], {after}[1]['y'])"
    line = f"{after} = lax.scan({block.name}, {init}, {xs.name})"
    return Draft(code, 3, [block], [line])


def _with_head(block: Block, line: str, out: tuple[Var, ...]) -> Block:
    target, code = line.split(" = ")
    names = target.replace("(", "").replace(")", "").split(", ")
    variables = {v.name: v for v in out}
    pieces = code
    statements = []
    if code == "carry, x":
        index = {n: f"carry[{k}]" for k, n in enumerate(names[:-1])} | {names[-1]: "x"}
    else:
        index = {n: f"{pieces}[{k}]" for k, n in enumerate(names)}
    statements = [Statement((variables[n],), index[n]) for n in names]
    return Block(block.name, block.params, (*statements, *block.body), block.result)


def fori(s: Scope) -> Draft:
    """`fori_loop`, sometimes with bounds that depend on data."""
    carry = s.array(0)
    c = Var(s.new_name("a"), carry.shape, carry.dtype)
    i = Var(s.new_name("i"), (), "int32")
    block, _ = function(s, [i, c], [c])
    upper = s.rng.choice(("0", "1", "3", "3", "2", "2"))
    lower = s.rng.choice(("0", "0", "-1", "1"))
    if s.rng.random() < 0.15:
        upper = f"jnp.minimum(jnp.sum({s.any()} > 0), 3).astype(jnp.int32)"
        lower = "jnp.int32(0)"
    unroll = s.rng.choice(("", "", "", ", unroll=2", ", unroll=True"))
    return Draft(
        f"lax.fori_loop({lower}, {upper}, {block.name}, {strong(carry)}{unroll})", 1, [block]
    )


def while_loop(s: Scope) -> Draft:
    """`while_loop` that ends after some steps, or when the carry is large."""
    carry = s.array(0)
    c = Var(s.new_name("a"), carry.shape, carry.dtype)
    i = Var(s.new_name("i"), (), "int32")
    inner = child(s, [i, c])
    statements = body(inner)
    block = Block(s.new_name("f"), ("c",), statements, f"({i.name} + 1, {of_type(inner, c)})")
    block = _with_head(block, f"({i.name}, {c.name}) = c", (i, c))
    more = s.rng.choice(("", "", " & jnp.all(jnp.abs(c[1]) < 3)"))
    test = f"lambda c: (c[0] < {s.rng.choice((0, 2, 3))}){more}"
    return Draft(
        f"lax.while_loop({test}, {block.name}, (np.int32(0), {strong(carry)}))[1]", 1, [block]
    )


def conditional(s: Scope) -> Draft:
    """`cond` and `switch`."""
    operands = [s.array(0) for _ in range(s.rng.randrange(0, 3))]
    wanted = s.array(0)
    wanted = Var("", wanted.shape, wanted.dtype)
    blocks = []
    count = 2 if s.rng.random() < 0.6 else s.rng.randrange(1, 4)
    for _ in range(count):
        inner = child(s, [param(s, v) for v in operands])
        if not inner.variables and not inner.outer:
            raise NoVariable
        names = tuple(p.name for p in inner.variables)
        statements = body(inner)
        if not inner.variables:
            raise NoVariable
        blocks.append(Block(s.new_name("f"), names, statements, of_type(inner, wanted)))
    names = ", ".join([v.name for v in operands])
    source = s.any()
    branches = ", ".join(b.name for b in blocks)
    if count == 2:
        test = s.rng.choice((f"jnp.sum(jnp.real({source})) > 0", f"jnp.any({source} != 0)", "True"))
        return Draft(f"lax.cond({', '.join(filter(None, (test, branches, names)))})", 1, blocks)
    index = f"jnp.sum(jnp.real({source}) > 0).astype(jnp.int32)"
    return Draft(
        f"lax.switch({', '.join(filter(None, (index, f'[{branches}]', names)))})", 1, blocks
    )


def jit(s: Scope) -> Draft:
    """A `jit` boundary."""
    operands = [s.array(0) for _ in range(s.rng.randrange(1, 3))]
    block, _ = function(s, [param(s, v) for v in operands])
    names = [v.name for v in operands]
    options = s.rng.choice(("", "", ", inline=True", ", keep_unused=True"))
    if s.rng.random() < 0.15:
        options, names[0] = ", donate_argnums=0", f"jnp.array({names[0]}, copy=True)"
    if s.rng.random() < 0.2:
        n = s.new_name("n")
        block = Block(
            block.name, (*block.params, n), block.body, f"{block.result} * ({n} if {n} > 1 else 2)"
        )
        options += f", static_argnums={len(names)}"
        names.append(str(s.rng.choice((1, 2, 3))))
    return Draft(f"jax.jit({block.name}{options})({', '.join(names)})", 1, [block])


def vmap(s: Scope) -> Draft:
    """`vmap` over chosen axes, with collectives."""
    v = s.array(1)
    axis = s.rng.randrange(len(v.shape))
    size = v.shape[axis]
    if not size:
        raise NoVariable
    p = Var(s.new_name("a"), v.shape[:axis] + v.shape[axis + 1 :], v.dtype, v.weak)
    operands, params, axes = [v.name], [p], [str(axis)]
    w = s.matching(lambda w: size in w.shape or s.rng.random() < 0.4)
    if w is not None:
        k = w.shape.index(size) if size in w.shape else None
        shape = w.shape if k is None else w.shape[:k] + w.shape[k + 1 :]
        operands.append(w.name)
        params.append(Var(s.new_name("a"), shape, w.dtype, w.weak))
        axes.append(str(k))
    options, named = "", dict(s.axes)
    if s.rng.random() < 0.5:
        name = f"axis{s.depth}"
        named[name] = size
        options += f", axis_name={name!r}"
    inner = child(s, params, named)
    statements = body(inner)
    result = inner.variables[-1]
    if s.rng.random() < 0.3:
        options += f", out_axes={s.rng.randrange(-len(result.shape) - 1, len(result.shape) + 1)}"
    if s.rng.random() < 0.1:
        options += f", spmd_axis_name={f'spmd{s.depth}'!r}"
    names = tuple(p.name for p in params)
    block = Block(s.new_name("f"), names, statements, result.name)
    tuple_of_axes = f"({', '.join(axes)},)"
    return Draft(
        f"jax.vmap({block.name}, {tuple_of_axes}{options})({', '.join(operands)})", 1, [block]
    )


def checkpoint(s: Scope) -> Draft:
    """`checkpoint` with a policy, `jit` of it, named values."""
    operands = [s.inexact() for _ in range(s.rng.randrange(1, 3))]
    block, _ = function(s, [param(s, v) for v in operands])
    policy = s.rng.choice(POLICIES)
    if s.rng.random() < 0.2:
        name = s.rng.choice(("'p'", "'q'"))
        named = f"checkpoint_name({block.result}, {name})"
        block = Block(block.name, block.params, block.body, f"jnp.sin({named})")
        policy = ", policy=jax.checkpoint_policies." + s.rng.choice(
            ("save_only_these_names('p')", "save_anything_except_these_names('q')")
        )
    fun = f"jax.checkpoint({block.name}{policy})"
    fun = s.rng.choice((fun, fun, f"jax.jit({fun})"))
    return Draft(f"{fun}({', '.join(v.name for v in operands)})", 1, [block])


def rule_function(s: Scope, params: list[Var]) -> Block:
    """A function that gets a rule; the rule runs later, so it closes over nothing."""
    inner = child(s, params)
    inner.outer = []
    statements = body(inner)
    names = tuple(p.name for p in params)
    return Block(s.new_name("h"), names, statements, inner.variables[-1].name)


def custom_jvp(s: Scope) -> Draft:
    """A custom JVP, whose rule doubles the derivative."""
    operands = [s.real() for _ in range(s.rng.randrange(1, 3))]
    params = [param(s, v) for v in operands]
    inner = rule_function(s, params)
    name = s.new_name("f")
    args = ", ".join(v.name for v in operands)
    lines = [f"{name} = jax.custom_jvp({inner.name})"]
    if s.rng.random() < 0.5:
        rule = s.new_name("r")
        lines += [
            f"def {rule}(primals, tangents):",
            f"    out, t = jax.jvp({inner.name}, primals, tangents)",
            f"    return out, jax.tree.map(lambda x: {s.rng.choice(('2 * x', 'x', '-x + x * 3'))}"
            " if x.dtype != jax.dtypes.float0 else x, t)",
            f"{name}.defjvp({rule})",
        ]
    else:
        rules = ["lambda t, out, *xs: jnp.ones_like(out) * jnp.sum(t)"]
        rules += [s.rng.choice(("None", *rules)) for _ in operands[1:]]
        lines += [f"{name}.defjvps({', '.join(rules)})"]
    fun = s.rng.choice((name, name, f"jax.jit({name})"))
    return Draft(f"{fun}({args})", 1, [inner], lines)


def custom_vjp(s: Scope) -> Draft:
    """A custom VJP, whose rule changes the cotangents."""
    operands = [s.real() for _ in range(s.rng.randrange(1, 3))]
    params = [param(s, v) for v in operands]
    block = rule_function(s, params)
    name, forward, backward = (s.new_name("f") for _ in range(3))
    args = ", ".join(block.params)
    changed = s.rng.choice(("3 * x", "x", "jnp.where(x > 0, x, 2 * x)", "x + 1"))
    results = f"tuple({changed} for x in pull(ct))"
    if s.rng.random() < 0.2:
        results = "(None,) * " + str(len(operands))
    lines = [
        f"{name} = jax.custom_vjp({block.name})",
        f"def {forward}({args}):",
        f"    return {block.name}({args}), ({args}, {s.rng.choice(('None', '3', 'jnp.ones(2)'))})",
        f"def {backward}(residuals, ct):",
        f"    out, pull = jax.vjp({block.name}, *residuals[:-1])",
        f"    return {results}",
        f"{name}.defvjp({forward}, {backward}{s.rng.choice(('', '', ', optimize_remat=True'))})",
    ]
    fun = s.rng.choice((name, name, f"jax.jit({name})"))
    return Draft(f"{fun}({', '.join(v.name for v in operands)})", 1, [block], lines)


def custom_vjp_of_constant(s: Scope) -> Draft:
    """A custom VJP with a static argument."""
    v = s.real()
    name = s.new_name("f")
    static = s.rng.choice((1, 2))
    lines = [
        f"{name} = jax.custom_vjp(lambda n, x: jnp.sin(x) * n, nondiff_argnums=(0,))",
        f"{name}.defvjp(lambda n, x: (jnp.sin(x) * n, x), lambda n, x, t: (t * x * n,))",
    ]
    return Draft(f"{name}({static}, {v.name})", 1, [], lines)


def custom_gradient(s: Scope) -> Draft:
    """`custom_gradient` and `linear_call`."""
    v = s.real()
    if s.rng.random() < 0.5:
        block = f"jax.custom_gradient(lambda x: (jnp.cos(x), lambda t: (t * x + 1,)))({v.name})"
        return Draft(block)
    linear = "lambda r, x: r * x", "lambda r, t: 3 * r * t"
    residual = f"jnp.cos(lax.stop_gradient({v.name}))"
    return Draft(f"jax.custom_derivatives.linear_call({', '.join(linear)}, {residual}, {v.name})")


def derivative(s: Scope) -> Draft:
    """A derivative of a function inside the program."""
    v = s.real()
    p = param(s, v)
    inner = child(s, [p])
    statements = body(inner)
    result = inner.variables[-1].name
    block = Block(s.new_name("f"), (p.name,), statements, result)
    scalar = f"lambda x: jnp.sum(jnp.real({block.name}(x))).astype({v.name}.dtype)"
    cos = f"jnp.cos({v.name})"
    code = s.rng.choice((
        f"jax.grad({scalar})({v.name})", f"jax.jvp({block.name}, ({v.name},), ({cos},))[1]",
        f"jax.linearize({block.name}, {v.name})[1]({cos})", f"jax.hessian({scalar})({v.name})",
        f"jax.jacfwd({block.name})({v.name})", f"jax.jacrev({block.name})({v.name})",
        f"(lambda out, pull: pull(out)[0])(*jax.vjp({block.name}, {v.name}))",
        f"jax.value_and_grad(lambda x: (({scalar})(x), x * 2), has_aux=True)({v.name})[1]",
        f"jax.grad(jax.grad({scalar}) if {v.shape == ()} else {scalar})({v.name})",
        f"jax.grad(lambda x: jnp.sum(jax.grad({scalar})(x) ** 2).astype({v.name}.dtype))({v.name})",
        f"jax.vmap(jax.grad({scalar}))(jnp.stack([{v.name}, {cos}.astype({v.name}.dtype)]))",
        f"jax.linear_transpose(lambda x: x * 3 + jnp.sum(x), {v.name})("
        f"{cos}.astype({v.name}.dtype))[0]",
    ))  # fmt: skip
    return Draft(code, 1, [block])


def reference(s: Scope) -> Draft:
    """Reads and writes of a reference."""
    v = s.inexact()
    r = s.new_name("r")
    lines = [f"{r} = jax.new_ref({v.name})"]
    for _ in range(s.rng.randrange(1, 4)):
        choices = [f"{r}[...] = {r}[...] * 2", f"{r}[...] = jnp.sin({r}[...])", f"{r}[...] += 1"]
        if v.shape and v.shape[0]:
            choices += [f"{r}[0] = jnp.sum({r}[...])", f"{r}[0] += {r}[-1]", f"{r}[-1] *= 3"]
        choices.append(
            f"lax.fori_loop(0, 2, lambda i, c: [{r}.__setitem__(..., {r}[...] * 2), c][1], 0)"
        )
        lines.append(s.rng.choice(choices))
    code = s.rng.choice((f"{r}[...]", f"{r}[...]", f"jax.freeze({r})"))
    return Draft(code, 1, [], lines)


def callback(s: Scope) -> Draft:
    """A callback on values without derivatives."""
    v = s.real()
    x = f"lax.stop_gradient({v.name})"
    method = s.rng.choice(("sequential", "expand_dims", "broadcast_all", "sequential_unrolled"))
    lines = [f"jax.debug.callback(lambda x: None, {v.name})"] if s.rng.random() < 0.3 else []
    shape = f"jax.ShapeDtypeStruct({v.shape}, {v.name}.dtype)"
    return Draft(
        f"jax.pure_callback(lambda x: np.asarray(x) * 2, {shape}, {x}, vmap_method={method!r})",
        1, [], lines,
    )  # fmt: skip


def solver(s: Scope) -> Draft:
    """Implicit derivatives: `custom_root`, `custom_linear_solve`."""
    v = s.need(lambda v: v.dtype in ("float32", "float64"))
    a = f"(jnp.abs({v.name}) + 1)"
    if s.rng.random() < 0.5:
        solve = "lambda mv, b: b / mv(jnp.ones_like(b))"
        return Draft(f"lax.custom_linear_solve(lambda x: x * {a}, {v.name}, {solve}, {solve})")
    return Draft(
        f"lax.custom_root(lambda x: x ** 3 + x - {v.name}, jnp.zeros_like({v.name}), "
        "lambda f, x: lax.fori_loop(0, 30, lambda i, x: x - f(x) / (3 * x ** 2 + 1), x), "
        "lambda g, y: y / g(jnp.ones_like(y)))"
    )


BLOCKS: list[tuple[Callable[[Scope], Draft | None], float]] = [
    (scan, 3), (scan_of_pairs, 1.5), (fori, 2), (while_loop, 1.2), (conditional, 2), (jit, 2),
    (vmap, 2.5), (checkpoint, 1.5), (custom_jvp, 2), (custom_vjp, 2), (custom_vjp_of_constant, 0.3),
    (custom_gradient, 0.5), (derivative, 2.5), (reference, 1), (callback, 0.5), (solver, 0.4),
]  # fmt: skip
