"""The primitives of calls of native functions: whole ones, and those that devices divide."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from primax_core.extend import (
    Primitive,
    abstract,
    batch,
    effects,
    hide_defaults,
    jvp,
    lower,
    native,
    partition,
    transpose,
)

from ._effects import effects_of
from ._partitioning import partitioning
from ._targets import check_known
from ._tokens import with_tokens
from ._vmapping import batched

ffi_call_p: Final = Primitive("ffi_call", multiple_results=True)
divided_ffi_call_p: Final = Primitive("divided_ffi_call", multiple_results=True)

for _name in ("ffi_call", "divided_ffi_call"):
    hide_defaults(
        _name,
        attributes=(),
        has_side_effect=False,
        ordered=False,
        vmap_method=None,
        input_layouts=None,
        output_layouts=None,
        input_output_aliases=(),
        custom_call_api_version=4,
        legacy_backend_config=None,
    )


def _rule(kind: Any) -> Callable[[Any], Any]:
    """Decorator of a rule of both primitives."""

    def register(rule: Any) -> Any:
        for prim in (ffi_call_p, divided_ffi_call_p):
            prim.rule(kind)(rule)
        return rule

    return register


@_rule(abstract)
def _abstract(*avals, result_avals, **_):  # type: ignore[no-untyped-def]
    return list(result_avals)


@_rule(effects)
def _effects(*avals, has_side_effect, ordered, **_):  # type: ignore[no-untyped-def]
    return effects_of(has_side_effect, ordered)


@ffi_call_p.rule(lower)
def _lower(  # type: ignore[no-untyped-def]
    ctx, *operands, target_name, result_avals, attributes, has_side_effect, ordered, vmap_method,
    input_layouts, output_layouts, input_output_aliases, custom_call_api_version,
    legacy_backend_config,
):  # fmt: skip
    check_known(target_name, ctx.platform, ctx.eqn.source)

    def call(values: list[Any], types: list[Any]) -> list[Any]:
        return native.call(
            ctx,
            target_name,
            values,
            types,
            attributes={name: frozen.value for name, frozen in attributes} or None,
            api_version=custom_call_api_version,
            backend_config=legacy_backend_config,
            operand_layouts=_fastest_first(input_layouts),
            result_layouts=_fastest_first(output_layouts),
            input_output_aliases=dict(input_output_aliases),
            has_side_effect=has_side_effect,
            ordered=ordered,
        )

    return with_tokens(target_name, call, operands, ctx.in_avals, result_avals)


def _fastest_first(layouts: Any) -> Any:
    return layouts and [order and order[::-1] for order in layouts]


@_rule(jvp)
def _jvp(primals, tangents, *, target_name, **_):  # type: ignore[no-untyped-def]
    raise ValueError(
        f"the native function {target_name!r} has no derivative: wrap its call in a function with "
        "custom_jvp or custom_vjp, and define the derivative there"
    )


for _prim in (ffi_call_p, divided_ffi_call_p):
    _prim.unsupported(transpose, "native functions are not known to be linear: use custom_vjp")


@ffi_call_p.rule(batch)
def _batch(axis, args, dims, **params):  # type: ignore[no-untyped-def]
    return batched(ffi_call_p, params["target_name"], axis, args, dims, params)


@divided_ffi_call_p.rule(batch)
def _batch_divided(axis, args, dims, **params):  # type: ignore[no-untyped-def]
    return batched(divided_ffi_call_p, params["target_name"], axis, args, dims, params)


@divided_ffi_call_p.rule(lower)
def _lower_whole(ctx, *operands, division, **params):  # type: ignore[no-untyped-def]
    return _lower(ctx, *operands, **params)


@divided_ffi_call_p.rule(partition)
def _partition(eqn, everywhere):  # type: ignore[no-untyped-def]
    return partitioning(ffi_call_p, eqn)
