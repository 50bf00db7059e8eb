"""Lowering of jaxprs to StableHLO modules."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from .._base import errors, monitoring
from .._base.digest import digest
from .._ir import rules as rule_kinds
from .._ir.dtypes import narrowed
from .._ir.effects import are_ordered
from .._ir.jaxpr import Jaxpr, Literal
from .._ir.placement import is_placed, unplaced
from .._runtime.layouts import Layout, mode_of
from .._trace.core import Tracer
from .._trace.reference_ops import references
from .._trace.staging import stage_with_aux
from .context import (
    bytecode,
    constant,
    context,
    func,
    hlo,
    i32,
    ir,
    name_meshes,
    parse_sharding,
    type_of,
    unknown_location,
)
from .formats import Formats
from .liveness import (
    aliases_of,
    has_symbolic_dims,
    kept_inputs,
    large_consts,
    liveness,
    stored_value,
)
from .locations import Body, locate, note_position, scopes_of
from .lowered_results import checked

if TYPE_CHECKING:
    from .shardings import ExecutableShardings


class LoweringContext:
    """Context of a lowering rule; one object is used for all equations of a module.

    Attributes:
      in_avals, out_avals: avals of the operands and results of the current equation, without
        placements.
      platform: ``cpu``, ``cuda``, ``rocm`` or ``tpu``.
      platform_kinds: rule kinds to try for this platform, the most specific first.
      broadcasts: broadcast values of the current block, by value and shape.
      needs: names of the native functions that the module calls, see ``_runtime.custom_calls``.
      token: the token for the next ordered effect of the current block. A rule that emits such an
        effect sets a new token; a rule with regions passes it in and out of them
        (:meth:`tokens`, :meth:`take_tokens`).
      mark: a suffix of the name of each equation's operations, by which ``explain`` finds them.
      sharding: the placement of the executable, if it is known.
      axes: the mesh of the current manual region, a ``MeshAxes``; ``None`` outside of one.
      symbolic: the jaxpr has symbolic dimensions (see ``_lower.shaped``).
      portable: the module may be compiled by another process, or is read and not compiled.
      body, bodies: the current jaxpr and all lowered ones, for :mod:`_lower.locations`.
    """

    __slots__ = (
        "module", "platform", "in_avals", "out_avals", "platform_kinds", "functions",
        "names", "callbacks", "inspections", "partitioned", "needs", "eqn", "num_partitions",
        "hoisted", "broadcasts", "token", "mark", "sharding", "symbolic", "portable", "axes",
        "body", "bodies", "_rules", "_inlined",
    )  # fmt: skip

    def __init__(
        self, module: ir.Module, platform: str, num_partitions: int = 1, sharding: Any = None
    ):
        self.module = module
        self.platform = platform
        self.sharding = sharding
        self.functions: dict[Any, Any] = {}
        self.names: set[str] = set()
        self.callbacks: list[Callable] = []
        self.inspections: list[Callable] = []
        self.partitioned: list[Any] = []
        self.needs: set[str] = set()
        self.num_partitions = num_partitions
        self.hoisted: dict[int, ir.Value] = {}
        self.broadcasts: dict[tuple, ir.Value] = {}
        self.token: ir.Value | None = None
        self.mark: Callable[[Any], str] | None = None
        self.symbolic = False
        self.portable = False
        self.axes: Any = None
        self.body: Body | None = None
        self.bodies: list[Body] = []
        self._rules: dict[Any, Callable] = {}
        self._inlined: dict[tuple, tuple] = {}
        special = (rule_kinds.lower.on(platform),)
        if platform in ("cuda", "rocm"):
            special += (rule_kinds.lower.on("gpu"),)
        self.platform_kinds = (*special, rule_kinds.lower)

    @property
    def scope(self) -> tuple[str, ...]:
        """The named scopes of the current equation, including those of enclosing equations."""
        return () if self.body is None else self.body.scope

    @property
    def allows_native_calls(self) -> bool:
        """True if the current operation may become a call of a native function.

        It is false in exported modules, which other processes compile, and where XLA divides the
        operation among devices, because XLA does not divide a custom call. A rule for which the
        native function is optional asks this; one that has no other form need not.
        """
        if self.portable:
            return False
        return self.num_partitions == 1 or (self.axes is not None and not self.axes.free)

    @property
    def unused_results(self) -> list[int]:
        """Indices of the results of the current equation that nothing reads.

        A native function need not write their memory. Results of a whole program, and of a function
        in it, count as read.
        """
        needed = getattr(self.body, "needed", None)
        if needed is None or self.eqn is None:
            return []
        return [i for i, v in enumerate(self.eqn.outvars) if v not in needed]

    def inspect_sharding(self, value: ir.Value, callback: Callable[[Any], None]) -> None:
        """Call a function with the sharding of a value, when the module is complete.

        The sharding is the one that the partitioner will choose.
        """
        if self.num_partitions == 1:
            from .._runtime.array import default_sharding

            callback(default_sharding() if self.sharding is None else self.sharding)
            return
        from .propagation import mark  # loaded on first use

        mark(value, len(self.inspections))
        self.inspections.append(callback)

    def rule(self, prim) -> Callable:
        """The lowering rule of a primitive on this platform."""
        rule = self._rules.get(prim)
        if rule is None:
            for kind in self.platform_kinds:
                candidate = prim.rules.get(kind)
                if candidate is not None and type(candidate) is not rule_kinds.Unsupported:
                    rule = candidate
                    break
            else:
                rule = prim.require(rule_kinds.lower, f"compiling for {self.platform}")
            rule = checked(prim, rule)
            if self.num_partitions > 1 and rule_kinds.partition in prim.rules:
                from .partitioned import lowering_of  # loaded on first use

                rule = lowering_of(prim, rule)
            self._rules[prim] = rule
        return rule

    def call(self, fun: Callable, *values: ir.Value, in_avals=None):
        """Lower a function of lax operations inline, on values of the current equation.

        Args:
          fun: takes and returns arrays (one, or a list).
          in_avals: avals of ``values``; by default those of the equation's operands.

        Returns:
          A value, or a list if ``fun`` returns a list or tuple.
        """
        avals = tuple(self.in_avals if in_avals is None else in_avals)
        staged = self._inlined.get((fun, avals))
        if staged is None:
            staged = self._inlined[fun, avals] = _stage_flat(fun, avals)
        jaxpr, single = staged
        outs = lower_body(self, jaxpr, values)
        return outs[0] if single else outs

    def call_jaxpr(self, jaxpr: Jaxpr, name: str, values: Sequence[ir.Value]) -> list[ir.Value]:
        """Emit a call of a jaxpr; calls of the same jaxpr share one private function."""
        if self.symbolic and has_symbolic_dims(jaxpr):
            # Inline: a function would need the dimension variables as arguments.
            return lower_body(self, jaxpr, values)
        if self.num_partitions > 1 and self._has_partitions(jaxpr):
            return lower_body(self, jaxpr, values)  # each call is divided in its own way
        types, callee, consts = self.private_function(jaxpr, name)
        ordered = self.tokens(jaxpr.effects)
        outs = list(func.CallOp(types, callee, [*ordered, *consts, *values]).results)
        return self.take_tokens(ordered, outs)

    def _has_partitions(self, jaxpr: Jaxpr) -> bool:
        if not rule_kinds.partition.version:  # no primitive has such a rule
            return False
        from .partitioned import has_partitions

        return has_partitions(jaxpr)

    def call_program(self, jaxpr: Jaxpr, name: str, values: Sequence[ir.Value]) -> list[ir.Value]:
        """Former name of :meth:`call_jaxpr`; removed in version 2.0 of the extension API."""
        warnings.warn(
            "call_program is called call_jaxpr since version 1.4 of the extension API; the old "
            "name is removed in version 2.0",
            DeprecationWarning,
            stacklevel=2,
        )
        return self.call_jaxpr(jaxpr, name, values)

    def manual(
        self,
        jaxpr: Jaxpr,
        values: Sequence[ir.Value],
        sizes: Mapping[Any, int],
        names: Sequence[Any],
        in_shardings: Sequence[str],
        out_shardings: Sequence[str],
    ) -> list[ir.Value]:
        """Lower a jaxpr of the parts of one position along some axes of a mesh.

        Args:
          values: whole operands; the arguments of the jaxpr are their parts.
          sizes: all axes of the mesh, in the order of its partitions.
          names: the axes that become manual; inside of another region, axes that are not yet.
          in_shardings, out_shardings: the division of operands and results, as Shardy's attributes
            with the mesh in place (``Sharding._sdy``). Their dimensions must be open (``{?}``) if
            some axes of the mesh remain free.

        Returns:
          The whole results, of the types of the current equation's results.
        """
        from .axes import manual_computation

        return manual_computation(self, jaxpr, values, sizes, names, in_shardings, out_shardings)

    def constant_of(self, const: Any) -> ir.Value:
        """The value of a constant of a jaxpr."""
        return _const_value(self, const, const.aval)

    def tokens(self, effects: frozenset) -> list[ir.Value]:
        """The token operands and results of an operation with these effects: one or none."""
        if not are_ordered(effects):
            return []
        if self.token is None:
            self.token = hlo.create_token()
        return [self.token]

    def take_tokens(self, tokens: Sequence[ir.Value], outs: list[ir.Value]) -> list[ir.Value]:
        """The values of a region or call without its leading token, which becomes the current
        one.
        """
        if not tokens:
            return outs
        self.token = outs[0]
        return outs[1:]

    def private_function(self, jaxpr: Jaxpr, name: str) -> tuple[list, ir.Attribute, list]:
        """The function of a jaxpr in this module, emitted once.

        Returns:
          The types of its results, its symbol, and the constants that precede the arguments of the
          jaxpr. With ordered effects, a token precedes all arguments and all results.
        """
        consts = self.passed_consts(jaxpr)
        key = jaxpr if self.axes is None else (jaxpr, self.axes)
        function = self.functions.get(key)
        if function is None:
            function = _private_function(self, jaxpr, self.unique(name), consts)
            self.functions[key] = function
        callee = ir.FlatSymbolRefAttr.get(function.name.value, context=context)
        operands = [_const_value(self, c, c.aval) for c in consts.values()] if consts else []
        return function.type.results, callee, operands

    def passed_consts(self, jaxpr: Jaxpr) -> dict[int, Any]:
        """Arguments of a jaxpr's function besides those of the jaxpr, by identity."""
        return large_consts(jaxpr)

    def unique(self, name: str) -> str:
        """An unused symbol name."""
        base = "".join(c if c.isalnum() or c in "_.$-" else "_" for c in name) or "fn"
        name, n = base, 0
        while name in self.names:
            name = f"{base}_{n}"
            n += 1
        self.names.add(name)
        return name


def _stage_flat(fun: Callable, avals: Sequence) -> tuple[Jaxpr, bool]:
    """The jaxpr of a function of arrays, and True if it has a single bare result."""

    def flat(*args):
        out = fun(*args)
        single = not isinstance(out, (list, tuple))
        return [out] if single else list(out), single

    jaxpr, single = stage_with_aux(flat, avals)
    return references.ops.for_lowering(jaxpr), single


def lower_body(ctx: LoweringContext, jaxpr: Jaxpr, args: Sequence[ir.Value]) -> list[ir.Value]:
    """Emit the equations of a jaxpr at the current insertion point."""
    env: dict[Any, ir.Value] = dict(zip(jaxpr.invars, args))
    for var, const in zip(jaxpr.constvars, jaxpr.consts):
        env[var] = _const_value(ctx, const, var.aval)
    literals: dict[Any, ir.Value] = {}

    def read(v):
        if type(v) is Literal:
            key = (v.scalar.dtype, v.scalar.tobytes()) if hasattr(v.scalar, "tobytes") else id(v)
            value = literals.get(key)
            if value is None:
                value = literals[key] = constant(v.scalar)
            return value
        return env[v]

    saved = ctx.in_avals, ctx.out_avals, ctx.eqn, ctx.broadcasts
    ctx.broadcasts = {}
    outer = ctx.body
    live, needed = liveness(jaxpr)
    body = ctx.body = Body(jaxpr, outer, needed)
    ctx.bodies.append(body)
    append = body.entries.append
    rules = ctx._rules
    for eqn in live:
        operands, in_avals = [], []
        for v in eqn.invars:
            a = v.aval
            in_avals.append(a.update(placement=unplaced) if is_placed(a) else a)
            operands.append(read(v) if type(v) is Literal else env[v])
        ctx.in_avals = in_avals
        ctx.out_avals = [
            v.aval.update(placement=unplaced) if is_placed(v.aval) else v.aval for v in eqn.outvars
        ]
        ctx.eqn = eqn
        rule = rules.get(eqn.primitive) or ctx.rule(eqn.primitive)
        append(eqn)
        try:
            if ctx.mark is None:
                out = rule(ctx, *operands, **eqn.params)
            else:
                name = "/".join((*ctx.scope, eqn.primitive.name)) + ctx.mark(eqn)
                with ir.Location.name(name, context=context):
                    out = rule(ctx, *operands, **eqn.params)
        except Exception as error:
            note_position(error, body, eqn)
            raise
        append(out)
        if ctx.symbolic:
            out = fitted_results(eqn, out)
        if any(is_placed(v.aval) and v.aval.placement.is_partial for v in eqn.outvars):
            from .axes import with_constraints

            several = eqn.primitive.multiple_results
            out = with_constraints(eqn.outvars, out if several else [out])
            out = out if several else out[0]
        if eqn.primitive.multiple_results:
            for v, value in zip(eqn.outvars, out, strict=True):
                env[v] = value
        else:
            env[eqn.outvars[0]] = out
    ctx.in_avals, ctx.out_avals, ctx.eqn, ctx.broadcasts = saved
    ctx.body = outer
    return [read(v) for v in jaxpr.outvars]


@contextmanager
def dimensions_of_arguments(
    ctx: LoweringContext,
    jaxpr: Jaxpr,
    values: Sequence[ir.Value],
    symbolic: bool,
    checks: bool = False,
    names: Sequence[str] | None = None,
) -> Iterator[None]:
    """Context manager for lowering a jaxpr with symbolic dimensions.

    The dimension variables are computed from the arguments' shapes, and asserted with ``checks``.
    """
    if not symbolic:
        yield
        return
    from .dynamic import variables_of

    saved, ctx.symbolic = ctx.symbolic, True
    with variables_of([v.aval for v in jaxpr.invars], values, checks, names):
        yield
    ctx.symbolic = saved


def fitted_results(eqn: Any, out: Any) -> Any:
    """Results with types as static as their avals."""
    from .shaped import fitted

    if not eqn.primitive.multiple_results:
        return fitted(out, eqn.outvars[0].aval)
    return [fitted(x, v.aval) for x, v in zip(out, eqn.outvars, strict=True)]


def _const_value(ctx: LoweringContext, const, aval) -> ir.Value:
    hoisted = ctx.hoisted.get(id(const))
    if hoisted is not None:
        return hoisted
    if type(const) is Literal:
        return constant(const.scalar)
    if isinstance(const, Tracer):
        raise errors.UnexpectedTracerError(
            f"a jaxpr to be compiled has a traced constant, {const!r}. A rule of a custom "
            "derivative, or a function passed to a transformation as an option, uses a value of an "
            f"enclosing function: pass it as an argument.\n{const._origin()}"
        )
    value = stored_value(const)
    # The type is that of the trace: 64-bit types may be enabled there and disabled here.
    if value.dtype != aval.dtype and narrowed(value.dtype) == aval.dtype:
        value = value.astype(aval.dtype)
    return constant(value)


def _private_function(ctx: LoweringContext, jaxpr: Jaxpr, name: str, consts: dict[int, Any]):
    """A function whose leading arguments are the jaxpr's large constants."""
    in_types = [type_of(c.aval) for c in consts.values()] + [type_of(v.aval) for v in jaxpr.invars]
    out_types = [type_of(v.aval) for v in jaxpr.outvars]
    ordered = [hlo.TokenType.get(context)] if are_ordered(jaxpr.effects) else []
    function = func.FuncOp(
        name, ([*ordered, *in_types], [*ordered, *out_types]),
        ip=ir.InsertionPoint(ctx.module.body), visibility="private",
    )  # fmt: skip
    arguments = list(function.add_entry_block().arguments)
    saved = ctx.hoisted, ctx.token, ctx.body
    ctx.body = Body(None, ctx.body)
    ctx.token = arguments.pop(0) if ordered else None
    ctx.hoisted = dict(zip(consts, arguments))
    with ir.InsertionPoint(function.entry_block), unknown_location:
        outs = lower_body(ctx, jaxpr, arguments[len(consts) :])
        func.ReturnOp([*([ctx.token] if ordered else []), *outs])
    ctx.hoisted, ctx.token, ctx.body = saved
    return function


class LoweredModule:
    """A StableHLO module, and the data needed to run it.

    The module is written without source locations. :meth:`located` adds them.
    """

    __slots__ = (
        "module", "kept_args", "consts", "callbacks", "needs", "name", "formats", "shardings",
        "platform", "jaxpr", "_bodies", "_key",
    )  # fmt: skip

    def __init__(
        self, module, kept_args, consts, callbacks, needs, name, formats, platform, jaxpr=None,
        bodies=None, shardings=None,
    ):  # fmt: skip
        self.module = module
        self.kept_args = kept_args
        self.consts = consts
        self.callbacks = callbacks
        self.needs = needs
        self.name = name
        self.formats = formats
        self.shardings = shardings
        self.platform = platform
        self.jaxpr = jaxpr
        self._bodies: list[Body] | None = bodies
        self._key: bytes | None = None

    def digest(self) -> bytes:
        """The digest of the module and its named scopes, without source locations."""
        if self._key is None:
            self._key = digest(bytecode(self.module) + scopes_of(self._bodies or ()))
        return self._key

    def located(self) -> ir.Module:
        """The module with source locations, names of operations and names of arguments."""
        bodies = self._bodies
        if bodies is not None:
            self.digest()
            jaxpr = self.jaxpr
            names = jaxpr.debug_info.arg_names or ()
            names = [None] * (len(jaxpr.invars) - len(names)) + list(names)
            if self.kept_args is not None:
                names = [names[i] for i in self.kept_args]
            locate(self.module, bodies, self.name, [None] * len(self.consts) + names)
            self._bodies = None
        return self.module


@monitoring.timed_as(monitoring.LOWER, lambda jaxpr, name, *_, **options: f"jit({name})")
def lower_module(
    jaxpr: Jaxpr,
    name: str,
    platform: str,
    *,
    donated: Sequence[int] = (),
    keep_unused: bool = False,
    num_partitions: int = 1,
    sharding: Any = None,
    formats: Any = None,
    mark: Callable[[Any], str] | None = None,
    shardings: ExecutableShardings | None = None,
    portable: bool = False,
) -> LoweredModule:
    """A StableHLO module whose ``main`` is the jaxpr.

    Arrays among the constants become leading arguments, so that they are not copied into the
    executable.

    Args:
      portable: native functions are not called where XLA has operations of its own.
    """
    if shardings is not None:
        sharding = shardings.everywhere
        num_partitions = sharding.num_devices
    with context, unknown_location:
        module = ir.Module.create()
        sym = "".join(c if c.isalnum() or c == "_" else "_" for c in name) or "main"
        module.operation.attributes["sym_name"] = ir.StringAttr.get(f"jit_{sym}")
        module.operation.attributes["mhlo.num_partitions"] = ir.IntegerAttr.get(
            ir.IntegerType.get_signless(32), num_partitions
        )
        module.operation.attributes["mhlo.num_replicas"] = ir.IntegerAttr.get(
            ir.IntegerType.get_signless(32), 1
        )
        ctx = LoweringContext(module, platform, num_partitions, sharding)
        ctx.mark = mark
        ctx.portable = portable
        ctx.in_avals = ctx.out_avals = ctx.eqn = None
        ctx.names.add("main")
        symbolic = has_symbolic_dims(jaxpr)
        used_inputs = None if keep_unused or symbolic else kept_inputs(jaxpr)
        inputs = jaxpr.invars if used_inputs is None else [jaxpr.invars[i] for i in used_inputs]
        consts = large_consts(jaxpr)
        in_types = [type_of(c.aval) for c in consts.values()] + [type_of(v.aval) for v in inputs]
        out_types = [type_of(v.aval) for v in jaxpr.outvars]
        main = func.FuncOp(
            "main", (in_types, out_types), ip=ir.InsertionPoint(module.body), visibility="public"
        )
        _annotate(main, jaxpr, consts, donated, used_inputs, formats, shardings)
        block = main.add_entry_block()
        with ir.InsertionPoint(block):
            arguments = list(block.arguments)
            ctx.hoisted = dict(zip(consts, arguments))
            args: dict[Any, ir.Value] = dict(zip(inputs, arguments[len(consts) :]))
            with dimensions_of_arguments(ctx, jaxpr, arguments[len(consts) :], symbolic):
                outs = lower_body(ctx, jaxpr, [args.get(v) for v in jaxpr.invars])
            func.ReturnOp(outs)
        finish_shardings(ctx, module)
        if num_partitions > 1:
            name_meshes(module)
        return LoweredModule(
            module,
            used_inputs,
            list(consts.values()),
            ctx.callbacks,
            frozenset(ctx.needs),
            name,
            formats,
            platform,
            jaxpr,
            ctx.bodies,
            shardings,
        )


def finish_shardings(ctx: LoweringContext, module: ir.Module) -> None:
    """Replace the marks of operations that need the shardings around them."""
    if ctx.partitioned:
        from .partitioned import divide  # loaded on first use

        divide(ctx, module)
    if ctx.inspections:
        from .propagation import inspect  # loaded on first use

        inspect(module, ctx.sharding._replicated(), ctx.inspections)


def _annotate(
    main, jaxpr: Jaxpr, consts: dict[int, Any], donated, used_inputs, formats: Formats | None,
    shardings: ExecutableShardings | None,
) -> None:  # fmt: skip
    """Set the attributes of the arguments and results of ``main``: donation, layouts, memory
    kinds, shardings.
    """
    if not donated and formats is None and shardings is None:
        return
    aliases = aliases_of(jaxpr, donated)
    if shardings is not None:
        # XLA pairs the buffers of results whose shardings it chooses.
        ins, outs = shardings.ins, shardings.outs
        aliases = {i: o for i, o in aliases.items() if ins[i] is outs[o] is not None}
    if formats is not None:
        # A result in another layout cannot use the buffer.
        ins, outs = formats.in_layouts, formats.out_layouts
        aliases = {i: o for i, o in aliases.items() if ins[i] == outs[o] != Layout.AUTO}
        donated = tuple(aliases)
    attrs = [sharding_attribute(None) for _ in consts]
    if shardings is not None:
        texts = shardings.texts_of_constants(list(consts.values()))
        attrs = [sharding_attribute(text) for text in texts]
    for i in range(len(jaxpr.invars)) if used_inputs is None else used_inputs:
        entry = {} if shardings is None else sharding_attribute(shardings.of_argument(i))
        if i in aliases:
            entry["tf.aliasing_output"] = i32(aliases[i])
        elif i in donated:
            entry["jax.buffer_donor"] = ir.BoolAttr.get(True)
        if formats is not None:
            entry["mhlo.layout_mode"] = ir.StringAttr.get(mode_of(formats.in_layouts[i]))
        attrs.append(entry)
    main.arg_attrs = ir.ArrayAttr.get([ir.DictAttr.get(a) for a in attrs])
    if formats is not None or shardings is not None:
        results = []
        for i in range(len(jaxpr.outvars)):
            entry = {} if shardings is None else sharding_attribute(shardings.of_result(i))
            if formats is not None:
                entry["mhlo.layout_mode"] = ir.StringAttr.get(mode_of(formats.out_layouts[i]))
                if formats.out_kinds[i] is not None:
                    entry["mhlo.memory_kind"] = ir.StringAttr.get(formats.out_kinds[i])
            results.append(ir.DictAttr.get(entry))
        main.result_attrs = ir.ArrayAttr.get(results)


def sharding_attribute(text: str | None) -> dict[str, ir.Attribute]:
    """The attributes of an argument or result with a sharding, or none."""
    return {} if text is None else {"sdy.sharding": parse_sharding(text)}
