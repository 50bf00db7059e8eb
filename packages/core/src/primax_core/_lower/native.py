"""Calls of native functions in StableHLO (``stablehlo.custom_call``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from jaxlib.mlir import ir

from .._ir.avals import abstract_token
from .._ir.effects import are_ordered
from .._ir.jaxpr import Jaxpr
from .._ir.symbolic_dims import is_static
from .._runtime import native_targets
from .context import hlo, i32, parse_sharding, physical, sdy, type_of
from .native_attributes import attribute
from .shaped import size_values

Aliases = Mapping[int, int]
Layouts = Sequence[Sequence[int] | None]

TYPED: Final = 4
"""Version of the interface of typed handlers, which take attributes."""

_VERSIONS: Final = {
    1: "no status",
    2: "a status",
    3: "a text and a status",
    TYPED: "typed handlers",
}


def row_major(rank: int) -> tuple[int, ...]:
    """The layout with the last axis varying fastest."""
    return tuple(range(rank - 1, -1, -1))


def column_major(rank: int) -> tuple[int, ...]:
    """The layout of stacked matrices with the row axis varying fastest."""
    return (rank - 2, rank - 1, *range(rank - 3, -1, -1))


def call(
    ctx: Any,
    target: str,
    operands: Sequence[ir.Value[Any]],
    out_avals: Sequence[Any] | None = None,
    *,
    attributes: Mapping[str, Any] | None = None,
    api_version: int = TYPED,
    backend_config: str | bytes | None = None,
    operand_layouts: Layouts | None = None,
    result_layouts: Layouts | None = None,
    input_output_aliases: Aliases | None = None,
    has_side_effect: bool = False,
    ordered: bool = False,
    called_computations: Sequence[Jaxpr] = (),
    extra_attributes: Mapping[str, Any] | None = None,
    needs: Sequence[str] | None = None,
    once: bool = False,
) -> list[ir.Value[Any]]:
    """Call a native function, in a lowering rule.

    Args:
      ctx: the context of the lowering rule.
      target: the name of the native function, see ``register``.
      operands: MLIR values, row-major unless ``operand_layouts`` differs; also StableHLO's tokens.
      out_avals: types of the results; by default those of the equation. ``abstract_token`` is the
        type of a result that is a token of StableHLO.
      attributes: the named attributes that the handler reads (``api_version`` 4): booleans,
        integers and floats (NumPy scalars keep their dtype, Python numbers have 64 bits), strings
        and bytes, arrays of one axis and sequences of numbers (booleans arrive as uint8), dtypes
        (``DataType``, an enumeration of uint8), dictionaries of these with strings as keys, and
        MLIR attributes.
      api_version: the interface of the native function: 4 for typed handlers; for the earlier
        ones 1 (no status), 2 (a status) and 3 (a text and a status). XLA announces the removal of
        1 and 2 on CPUs. Mosaic's TPU kernels use 1.
      backend_config: text or bytes for the earlier interfaces, instead of attributes; on CPUs
        functions of version 3 receive it.
      operand_layouts, result_layouts: for each array the axes, fastest first; ``None`` is
        row-major.
      input_output_aliases: ``{operand: result}``, results that use the memory of operands. XLA
        copies an operand that is used elsewhere.
      has_side_effect: keep the call even if its results are unused. The primitive needs an effect
        with ``keeps`` too, or its equation is removed before lowering.
      ordered: run the call after the ordered calls before it. The primitive needs an ordered
        effect.
      called_computations: jaxprs, emitted as functions of the module, that the call refers to.
      extra_attributes: attributes of the operation itself, such as ``kernel_name`` or
        ``mhlo.frontend_attributes``.
      needs: names that must be provided before the executable is compiled or loaded, by
        ``register`` or ``provides_custom_calls``; by default the target. ``()`` for targets that
        XLA or the platform's plugin has itself.
      once: on several devices the first one calls the function, with whole operands, as it does
        for functions with side effects. Otherwise each device calls it, also with whole operands.
        In manual regions each device calls it with its parts.

    Returns:
      The values of the results.

    Raises:
      TypeError, ValueError: if the parts of the call do not fit; XLA does not check all of them.
      NotImplementedError: if the target is registered for other platforms or another interface.
    """
    if needs is None:
        native_targets.check_registered(target, ctx.platform, api_version == TYPED)
        needs = (target,)
    tokens = ctx.tokens(ctx.eqn.effects) if ordered else []
    if ordered and not tokens:
        raise ValueError(
            f"the call of {target!r} is ordered, but {ctx.eqn.primitive.name} has no ordered "
            "effect: return one from its effects rule"
        )
    avals = ctx.out_avals if out_avals is None else out_avals
    placed = {}
    if (once or has_side_effect) and ctx.num_partitions > 1 and ctx.axes is None:
        placed["sdy.sharding"] = _on_first_partition(len(tokens) + len(avals))
    outs = custom_call(
        target,
        [*tokens, *operands],
        avals,
        attributes=attributes,
        api_version=api_version,
        backend_config=backend_config,
        operand_layouts=operand_layouts,
        result_layouts=result_layouts,
        input_output_aliases=input_output_aliases,
        has_side_effect=has_side_effect or ordered,
        tokens=len(tokens),
        called_functions=[_function_of(ctx, target, j) for j in called_computations],
        extra_attributes={**(extra_attributes or {}), **placed},
    )
    ctx.needs.update(needs)
    if placed:  # an argument or result of an executable is not on one of its devices
        everywhere = ctx.sharding._replicated()
        for i, aval in enumerate(avals, len(tokens)):
            if aval is not abstract_token:
                text = everywhere._sdy(physical(aval).ndim)
                outs[i] = sdy().sharding_constraint(outs[i], parse_sharding(text))
    return ctx.take_tokens(tokens, outs)


def _on_first_partition(results: int) -> ir.Attribute:
    """Shardy's attribute of a call by the first partition, which receives whole operands.

    Every partition receives whole results. A call without results has one sharding too.
    """
    shardings = ["<mesh<[], device_ids=[0]>, []>"] * max(results, 1)
    return parse_sharding(f"#sdy.sharding_per_value<[{', '.join(shardings)}]>")


def _function_of(ctx: Any, target: str, jaxpr: Jaxpr) -> ir.Attribute:
    """The symbol of a jaxpr's function."""
    if are_ordered(jaxpr.effects):
        raise ValueError(f"a jaxpr that {target!r} calls has ordered effects")
    _, symbol, consts = ctx.private_function(jaxpr, f"{target}_computation")
    if consts:
        raise ValueError(
            f"a jaxpr that {target!r} calls closes over arrays: make them arguments of the jaxpr"
        )
    return symbol


def custom_call(
    target: str,
    operands: Sequence[ir.Value[Any]],
    out_avals: Sequence[Any],
    *,
    attributes: Mapping[str, Any] | None = None,
    api_version: int = TYPED,
    backend_config: str | bytes | None = None,
    operand_layouts: Layouts | None = None,
    result_layouts: Layouts | None = None,
    input_output_aliases: Aliases | None = None,
    has_side_effect: bool = False,
    tokens: int = 0,
    called_functions: Sequence[ir.Attribute] = (),
    extra_attributes: Mapping[str, Any] | None = None,
) -> list[ir.Value[Any]]:
    """Emit the operation of a :func:`call`.

    Args:
      tokens: the number of leading operands that are tokens; equally many leading results are.
      called_functions: the symbols of functions of the module.
    """
    types = [hlo.TokenType.get() if a is abstract_token else type_of(a) for a in out_avals]
    operand_layouts = _checked_layouts(target, "operand", operand_layouts, operands[tokens:])
    result_layouts = _checked_layouts(target, "result", result_layouts, types)
    aliases = dict(input_output_aliases or {})
    _check_aliases(target, aliases, operands[tokens:], types, operand_layouts, result_layouts)
    if tokens:
        operand_layouts = [*[()] * tokens, *operand_layouts]
        result_layouts = [*[()] * tokens, *result_layouts]
        types = [*[hlo.TokenType.get()] * tokens, *types]
        aliases = {i + tokens: o + tokens for i, o in aliases.items()}
    shape_operands: list[int] = []
    if not all(is_static(a.shape) for a in out_avals):
        # Additional operands specify the shapes of the results; refinement removes them. It does
        # not support aliases, whose types would change one after the other.
        shape_operands = list(range(len(operands), len(operands) + len(out_avals)))
        shapes = [size_values(() if a is abstract_token else physical(a).shape) for a in out_avals]
        operands, aliases = [*operands, *shapes], {}
        operand_layouts = [*operand_layouts, *[row_major(1)] * len(out_avals)]
    op = hlo.CustomCallOp(
        types,
        list(operands),
        call_target_name=ir.StringAttr.get(target),
        has_side_effect=ir.BoolAttr.get(has_side_effect),
        backend_config=_config(target, api_version, attributes, backend_config),
        api_version=i32(api_version),
        called_computations=ir.ArrayAttr.get(list(called_functions)),
        operand_layouts=_layouts(operand_layouts),
        result_layouts=_layouts(result_layouts),
        output_operand_aliases=_alias_attributes(aliases, len(types) > 1),
    )
    if shape_operands:
        indices = ir.DenseElementsAttr.get(np.array(shape_operands, np.int64))
        op.operation.attributes["indices_of_shape_operands"] = indices
    for name, value in (extra_attributes or {}).items():
        if name in op.operation.attributes:
            raise ValueError(f"the call of {target!r} has an attribute {name} of its own")
        op.operation.attributes[name] = attribute(value, f"extra attribute {name!r}")
    return list(op.results)


def _config(
    target: str, api_version: int, attributes: Mapping[str, Any] | None, text: str | bytes | None
) -> ir.Attribute:
    """The attributes of a typed handler, or the text for an earlier interface."""
    if api_version not in _VERSIONS:
        raise ValueError(
            f"the call of {target!r} has api_version {api_version!r}; there are "
            + ", ".join(f"{v} ({what})" for v, what in _VERSIONS.items())
        )
    if api_version == TYPED:
        if text is not None:
            raise ValueError(
                f"the call of {target!r} has a backend_config, which typed handlers (api_version "
                "4) do not receive: pass attributes, or an earlier api_version"
            )
        return attribute(dict(attributes or {}), f"attributes of {target!r}")
    if attributes:
        raise ValueError(
            f"the call of {target!r} has attributes, which only typed handlers (api_version 4) "
            f"receive, but api_version={api_version}: pass a text as backend_config"
        )
    if text is not None and not isinstance(text, (str, bytes)):
        raise TypeError(f"the backend_config of {target!r} is a {type(text).__name__}, not a text")
    return ir.StringAttr.get(text or "")


def _alias_attributes(aliases: Aliases, several: bool) -> ir.Attribute:
    # The op has several results, not a tuple; the aliases call its results a tuple.
    pairs = [
        hlo.OutputOperandAlias.get(
            output_tuple_indices=[out] if several else [],
            operand_index=operand,
            operand_tuple_indices=[],
        )
        for operand, out in aliases.items()
    ]
    return ir.ArrayAttr.get(pairs)


def _layouts(orders: Sequence[Sequence[int]]) -> ir.Attribute:
    index = ir.IndexType.get()
    return ir.ArrayAttr.get(
        [ir.DenseIntElementsAttr.get(np.asarray(o, np.int64), type=index) for o in orders]
    )


# Checks


def _rank_of(x: Any) -> int:
    type_ = x.type if isinstance(x, ir.Value) else x
    return 0 if type_ == hlo.TokenType.get() else ir.RankedTensorType(type_).rank


def _checked_layouts(
    target: str, what: str, layouts: Layouts | None, arrays: Sequence[Any]
) -> list[Sequence[int]]:
    """Layouts of all arrays; XLA ends the process for some that are no permutations."""
    ranks = [_rank_of(a) for a in arrays]
    if layouts is None:
        return [row_major(n) for n in ranks]
    if len(layouts) != len(ranks):
        raise ValueError(
            f"the call of {target!r} has {len(ranks)} {what}s and {len(layouts)} {what}_layouts"
        )
    checked: list[Sequence[int]] = []
    for i, (layout, rank) in enumerate(zip(layouts, ranks)):
        order = row_major(rank) if layout is None else tuple(map(int, layout))
        if sorted(order) != list(range(rank)):
            raise ValueError(
                f"the layout of {what} {i} of {target!r} is {order}, but it is to contain each of "
                f"the {rank} axes once, fastest first; row-major is {row_major(rank)}"
            )
        checked.append(order)
    return checked


def _check_aliases(
    target: str, aliases: Aliases, operands: Sequence[Any], types: Sequence[Any],
    operand_layouts: Sequence[Any], result_layouts: Sequence[Any],
) -> None:  # fmt: skip
    for i, o in aliases.items():
        for what, n, count in (("operand", i, len(operands)), ("result", o, len(types))):
            if not 0 <= n < count:
                raise ValueError(
                    f"input_output_aliases of {target!r} has {what} {n}, but there are {count} "
                    f"{what}s (the keys are operands, the values are results)"
                )
        operand, result = operands[i].type, types[o]
        if hlo.TokenType.get() in (operand, result):
            raise ValueError(f"input_output_aliases of {target!r} has a token, without memory")
        if operand != result and operand.has_static_shape and result.has_static_shape:
            raise ValueError(
                f"result {o} of {target!r}, of type {result}, cannot use the memory of operand "
                f"{i}, of type {operand}: the types differ"
            )
        if tuple(operand_layouts[i]) != tuple(result_layouts[o]):
            raise ValueError(
                f"result {o} of {target!r} cannot use the memory of operand {i}: their layouts "
                f"are {tuple(result_layouts[o])} and {tuple(operand_layouts[i])}"
            )
    if len(set(aliases.values())) != len(aliases):
        raise ValueError(
            f"input_output_aliases of {target!r} gives one result the memory of several operands"
        )
