"""Lowering rules in the reference's convention: contexts and registration."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

import primax_core.extend as core
from primax_core import ShapeDtypeStruct, devices, io_callback, pure_callback
from primax_core.extend import Primitive, facade, lower, lowering as mlir
from primax_core.extend.lowering import hlo, ir

from .effect_sets import lowerable_effects
from .ir_values import flatten_ir_values
from .tables import RuleTable

PLATFORMS: Final = ("cpu", "cuda", "gpu", "rocm", "tpu")


class TokenSet:
    """Tokens by ordered effect."""

    def __init__(self, tokens: Mapping[Any, Any] | Iterable[tuple[Any, Any]] | None = None) -> None:
        self._tokens = dict(tokens or ())

    def __len__(self) -> int:
        return len(self._tokens)

    def get(self, effect: Any) -> Any:
        """Return the token of an effect."""
        return self._tokens[effect]

    @classmethod
    def create(cls, effects: Sequence[Any]) -> TokenSet:
        """Create a new token for each effect."""
        return cls([(e, hlo.create_token()) for e in effects])

    def items(self) -> Sequence[tuple[Any, Any]]:
        """Return the effects with their tokens."""
        return tuple(self._tokens.items())

    def effects(self) -> set[Any]:
        """Return the effects that have tokens."""
        return set(self._tokens)

    def subset(self, effects: Iterable[Any]) -> TokenSet:
        """Return the tokens of some effects."""
        return TokenSet([(e, self._tokens[e]) for e in effects])

    def update_tokens(self, tokens: TokenSet) -> TokenSet:
        """Return these tokens, replaced by those in ``tokens``."""
        return TokenSet({**self._tokens, **tokens._tokens})


class ShardingContext(NamedTuple):
    """Devices of a module.

    Attributes:
      num_devices: the number of devices.
      device_assignment: the devices, if known.
      abstract_mesh: always ``None`` in this version.
    """

    num_devices: int
    device_assignment: tuple[Any, ...] | None = None
    abstract_mesh: Any = None


class LoweringParameters(NamedTuple):
    """Options for a whole module.

    Attributes:
      override_lowering_rules: must be ``None``; register rules instead.
      global_constant_computation, for_export, export_ignore_forward_compatibility,
      hoist_constants_as_args: accepted for compatibility.
    """

    override_lowering_rules: tuple[tuple[Any, Any], ...] | None = None
    global_constant_computation: bool = False
    for_export: bool = False
    export_ignore_forward_compatibility: bool = False
    hoist_constants_as_args: bool = False


NO_OVERRIDES: Final = (
    "override_lowering_rules is not supported: register rules with mlir.register_lowering, if "
    "necessary for one platform"
)


class ShapePolyLoweringState:
    """Symbolic dimensions of a module.

    Args:
      dim_vars: their names.
      lowering_platforms: the target platforms of the module.
    """

    def __init__(
        self, dim_vars: tuple[str, ...], lowering_platforms: tuple[str, ...] | None
    ) -> None:
        self.dim_vars: tuple[str, ...] = dim_vars
        self.lowering_platforms: tuple[str, ...] | None = lowering_platforms
        self.uses_dim_vars: bool = bool(dim_vars)
        self.has_platform_index_argument: bool = (
            lowering_platforms is not None and len(lowering_platforms) > 1
        )


class Keepalive:
    """Object that the executable of a module keeps alive."""

    __slots__ = ("target",)

    def __init__(self, target: Any) -> None:
        self.target = target

    def __call__(self, *args: Any) -> Any:
        raise RuntimeError("a Keepalive object cannot be called")


class ModuleContext:
    """Context of a module that is being lowered.

    The library creates one for each rule call. You can also create one for a module of your own:
    the constructor accepts all of the reference's options and uses ``platforms``, ``axis_context``,
    ``lowering_parameters``, ``module`` and ``shape_poly_state``.

    Attributes:
      core: the core's context of the module.
      platforms: the target platforms.
      module, context, ip, symbol_table: MLIR objects.
      keepalives: the arguments of :meth:`add_keepalive`.
    """

    def __init__(
        self,
        *,
        platforms: Sequence[str],
        backend: Any = None,
        axis_context: Any = None,
        keepalives: list[Any] | None = None,
        channel_iterator: Iterator[int] | None = None,
        host_callbacks: list[Any] | None = None,
        lowering_parameters: LoweringParameters | None = None,
        context: Any = None,
        module: Any = None,
        ip: Any = None,
        symbol_table: Any = None,
        lowering_cache: dict[Any, Any] | None = None,
        cached_primitive_lowerings: dict[Any, Any] | None = None,
        traceback_caches: Any = None,
        shape_poly_state: ShapePolyLoweringState | None = None,
        all_default_mem_kind: bool = True,
        sharding_attr_cache: dict[Any, Any] | None = None,
        aval_to_ir_types_cache: dict[Any, Any] | None = None,
        pallas_lowering_cache: dict[Any, Any] | None = None,
        pallas_collective_id_mapping: Any = None,
        core_context: Any = None,
    ) -> None:
        self.context: Any = facade.context
        if core_context is None:
            if module is None:
                with facade.context, facade.unknown_location:
                    module = ir.Module.create()
            core_context = facade.LoweringContext(module, _platform_of(platforms[0]))
            core_context.in_avals = core_context.out_avals = core_context.eqn = None
        self.core: Any = core_context
        self.module: Any = core_context.module
        self.platforms: tuple[str, ...] = tuple(platforms)
        self.backend: Any = backend
        self.axis_context: Any = axis_context or ShardingContext(core_context.num_partitions)
        self.keepalives: list[Any] = [] if keepalives is None else keepalives
        self.channel_iterator: Iterator[int] = channel_iterator or itertools.count(2)
        self.host_callbacks: list[Any] = (
            core_context.callbacks if host_callbacks is None else host_callbacks
        )
        self.lowering_parameters: LoweringParameters = lowering_parameters or LoweringParameters()
        if self.lowering_parameters.override_lowering_rules:
            raise NotImplementedError(NO_OVERRIDES)
        self.shape_poly_state: ShapePolyLoweringState = shape_poly_state or ShapePolyLoweringState(
            (), None
        )
        self.all_default_mem_kind: bool = all_default_mem_kind
        self.lowering_cache: dict[Any, Any] = {} if lowering_cache is None else lowering_cache
        self.cached_primitive_lowerings: dict[Any, Any] = cached_primitive_lowerings or {}
        self.traceback_caches: Any = traceback_caches
        self._ip = ip
        self._symbol_table = symbol_table

    @property
    def ip(self) -> Any:
        """Insertion point of functions: the end of the module."""
        return self._ip or ir.InsertionPoint(self.module.body)

    @property
    def symbol_table(self) -> Any:
        """Functions of the module by name."""
        if self._symbol_table is None:
            self._symbol_table = ir.SymbolTable(self.module.operation)
        return self._symbol_table

    def get_backend(self, optional: bool = False) -> Any:
        """Return jaxlib's client of the platform."""
        return self.backend if self.backend is not None else devices()[0].client

    def new_channel(self) -> int:
        """Return a channel number that no other operation of the module uses."""
        return next(self.channel_iterator)

    def add_host_callback(self, host_callback: Any) -> None:
        """Keep a callback alive as long as the executable."""
        self.add_keepalive(host_callback)

    def add_keepalive(self, keepalive: Any) -> None:
        """Keep an object alive as long as the executable.

        The executable is then not stored on disk.
        """
        self.keepalives.append(keepalive)
        self.core.callbacks.append(Keepalive(keepalive))

    def replace(self, **changes: Any) -> ModuleContext:
        """Return the same module context with other settings."""
        settings: dict[str, Any] = {
            name: getattr(self, name)
            for name in (
                "platforms", "backend", "axis_context", "keepalives", "channel_iterator",
                "host_callbacks", "lowering_parameters", "shape_poly_state",
                "all_default_mem_kind", "lowering_cache", "cached_primitive_lowerings",
                "traceback_caches",
            )
        }  # fmt: skip
        return ModuleContext(**{**settings, "core_context": self.core, **changes})


def _platform_of(name: str) -> str:
    return "cuda" if name == "gpu" else name


@dataclass
class LoweringRuleContext:
    """Context of a lowering rule, with the reference's attributes.

    Attributes:
      module_context: the context of the module.
      primitive: the primitive of the equation.
      avals_in, avals_out: types of its operands and results.
      tokens_in: input tokens of the operation's ordered effects.
      tokens_out: output tokens; a rule with ordered effects sets them.
      name_stack: the named scopes of the equation.
      platforms: the target platforms of the rule, if they differ from the module's.
    """

    module_context: ModuleContext
    name_stack: Any = ()
    traceback: Any = None
    primitive: Primitive | None = None
    avals_in: Sequence[Any] = ()
    avals_out: Any = ()
    tokens_in: TokenSet = field(default_factory=TokenSet)
    tokens_out: TokenSet | None = None
    const_lowering: dict[Any, Any] = field(default_factory=dict)
    axis_size_env: dict[Any, Any] | None = None
    dim_var_values: Sequence[Any] = ()
    jaxpr_eqn_ctx: Any = None
    platforms: Sequence[str] | None = None

    @property
    def core(self) -> Any:
        """The core's context of the module."""
        return self.module_context.core

    def set_tokens_out(self, tokens_out: TokenSet) -> None:
        """Set the output tokens of the operation's ordered effects."""
        self.tokens_out = tokens_out

    def replace(self, **changes: Any) -> LoweringRuleContext:
        """Return a copy with other fields, to call another rule."""
        return replace(self, **changes)

    def is_forward_compat(self) -> bool:
        """Return True if older versions must be able to read the module; always False."""
        return False


def context_of(ctx: Any) -> LoweringRuleContext:
    """Return the reference's context for a rule that the core calls with its own."""
    eqn = ctx.eqn
    ordered = [e for e in eqn.effects if e.ordered]
    tokens = ctx.tokens(eqn.effects) * len(ordered)
    return LoweringRuleContext(
        ModuleContext(platforms=(ctx.platform,), core_context=ctx),
        name_stack=ctx.scope,
        primitive=eqn.primitive,
        avals_in=tuple(ctx.in_avals),
        avals_out=list(ctx.out_avals),
        tokens_in=TokenSet(zip(ordered, tokens)),
        jaxpr_eqn_ctx=eqn.ctx,
    )


# Registration


def as_core_rule(rule: Callable[..., Any]) -> Callable[..., Any]:
    """A core lowering rule that calls a rule of the reference's convention."""

    def call(ctx: Any, *values: Any, **params: Any) -> Any:
        prim = ctx.eqn.primitive
        unsupported = lowerable_effects.filter_not_in(ctx.eqn.effects)
        if unsupported:
            raise ValueError(
                f"{prim.name} has effects that cannot be lowered: {unsupported}. If its "
                "lowering rule handles them, call mlir.lowerable_effects.add_type(EffectClass)"
            )
        context = context_of(ctx)
        out = rule(context, *values, **params)
        if len(context.tokens_in):
            if context.tokens_out is None:
                raise ValueError(
                    f"the lowering rule of {prim.name} must call ctx.set_tokens_out, because the "
                    f"operation has ordered effects: {context.tokens_in.effects()}"
                )
            ctx.token = context.tokens_out.items()[-1][1]
        outs = _checked(prim, out, ctx)
        return outs if prim.multiple_results else outs[0]

    return call


def _checked(prim: Primitive, out: Any, ctx: Any) -> list[Any]:
    """Return the MLIR values of a rule if their types match the equation's results."""
    outs = flatten_ir_values([list(out) if isinstance(out, ir.OpResultList) else out])
    expected = [mlir.type_of(a) for a in ctx.out_avals]
    got = [getattr(v, "type", None) for v in outs]
    if got != expected and not (ctx.symbolic and len(got) == len(expected)):
        raise ValueError(
            f"the lowering rule of {prim.name} returned values of type "
            f"{', '.join(map(str, got)) or 'none'}, but its results are of type "
            f"{', '.join(map(str, expected)) or 'none'}"
        )
    return outs


def _as_reference_rule(rule: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a core rule: it returns a sequence and accepts both kinds of context."""

    def call(ctx: Any, *values: Any, **params: Any) -> Sequence[Any]:
        if not isinstance(ctx, LoweringRuleContext):
            out = rule(ctx, *values, **params)
            return out if isinstance(out, (list, tuple)) else [out]
        inner = ctx.core
        saved = inner.in_avals, inner.out_avals
        inner.in_avals, inner.out_avals = list(ctx.avals_in), list(ctx.avals_out)
        try:
            out = rule(inner, *values, **params)
        finally:
            inner.in_avals, inner.out_avals = saved
        return out if isinstance(out, (list, tuple)) else [out]

    return call


_TABLES: Final = {None: RuleTable(lower, as_core_rule, _as_reference_rule)}
for _platform in PLATFORMS:
    _TABLES[_platform] = RuleTable(lower.on(_platform), as_core_rule, _as_reference_rule)


def lowerings(platform: str | None = None) -> RuleTable:
    """The lowering rules for one platform, or for all platforms."""
    return _TABLES[platform]


def register_lowering(
    prim: Primitive,
    rule: Callable[..., Any],
    platform: str | None = None,
    inline: bool = True,
    cacheable: bool = True,
) -> Callable[..., Any]:
    """Register a lowering rule.

    Args:
      prim: the primitive.
      rule: ``rule(ctx, *ir_values, **params)`` returns the MLIR values of the results as a
        sequence; see :class:`LoweringRuleContext`.
      platform: the target platform (``gpu`` for CUDA and ROCm); all platforms by default.
      inline, cacheable: accepted for compatibility. Operations are always emitted inline.

    Raises:
      NotImplementedError: for an unknown platform.
    """
    if platform not in _TABLES:
        raise NotImplementedError(
            f"Registering an MLIR lowering rule for primitive {prim} for an unknown platform "
            f"{platform}. Known platforms are: {', '.join(PLATFORMS)}."
        )
    _TABLES[platform][prim] = rule
    return rule


def lower_fun(
    fun: Callable[..., Any], multiple_results: bool = True
) -> Callable[..., Sequence[Any]]:
    """Create a lowering rule from a function of arrays.

    Args:
      fun: ``fun(*arrays, **params)`` returns an array, or a sequence with ``multiple_results``.
    """

    def rule(ctx: Any, *values: Any, **params: Any) -> Sequence[Any]:
        def flat(*arrays: Any) -> list[Any]:
            out = fun(*arrays, **params)
            return list(out) if multiple_results else [out]

        if isinstance(ctx, LoweringRuleContext):
            return ctx.core.call(flat, *flatten_ir_values(values), in_avals=tuple(ctx.avals_in))
        return ctx.call(flat, *values)

    return rule


def core_call_lowering(
    ctx: LoweringRuleContext,
    *args: Any,
    name: str,
    call_jaxpr: core.Jaxpr,
    backend: Any = None,
    inline_jax_late: bool = False,
    **params: Any,
) -> Sequence[Any]:
    """Emit a call of a jaxpr, which becomes a function of the module."""
    values = flatten_ir_values(args)
    if inline_jax_late:
        return ctx.core.call(
            lambda *xs: core.eval_jaxpr(call_jaxpr, xs), *values, in_avals=call_jaxpr.in_avals
        )
    return ctx.core.call_jaxpr(call_jaxpr, name, values)


# Callbacks


def emit_python_callback(
    ctx: LoweringRuleContext,
    callback: Callable[..., Any],
    token: Any,
    operands: Sequence[Any],
    operand_avals: Sequence[Any],
    result_avals: Sequence[Any],
    *,
    has_side_effect: bool,
    returns_token: bool = True,
    partitioned: bool = False,
    sharding: Any = None,
) -> tuple[Sequence[Any], Any, Any]:
    """Emit a call of a Python function.

    Args:
      callback: a function from arrays to a sequence of arrays of the types ``result_avals``.
      token: the input token of the call, or ``None``.
      has_side_effect: keep the call even if its results are unused.
      returns_token, partitioned, sharding: accepted for compatibility; there is one device.

    Returns:
      The results, the output token (``None`` without an input token), and an object that keeps the
      function alive. The library already keeps the function alive itself.

    Raises:
      NotImplementedError: on platforms that cannot call Python.
    """
    structs = [ShapeDtypeStruct(a.shape, a.dtype) for a in result_avals]

    def called(*arrays: Any) -> list[Any]:
        return list(callback(*arrays) or ())

    def flat(*arrays: Any) -> list[Any]:
        if token is not None:
            return list(io_callback(called, structs, *arrays, ordered=True))
        if has_side_effect:
            return list(io_callback(called, structs, *arrays))
        return list(pure_callback(called, structs, *arrays))

    if token is not None:
        ctx.core.token = token
    values = flatten_ir_values(operands)
    outs = ctx.core.call(flat, *values, in_avals=tuple(operand_avals))
    return outs, None if token is None else ctx.core.token, callback
