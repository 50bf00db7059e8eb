"""Lowering rules that call native functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from primax_core.extend import native
from primax_core.layout import Layout

from ._targets import check_known

_TYPED: Final = 4
_OPTIONS: Final = frozenset(
    ("api_version", "called_computations", "extra_attributes", "has_side_effect",
     "operand_output_aliases")
)  # fmt: skip


class Results(list[Any]):
    """The values of the results of a call."""

    @property
    def results(self) -> list[Any]:
        """The values, under the name that operations of MLIR have for them."""
        return self


def ffi_lowering(
    call_target_name: str,
    *,
    operand_layouts: Sequence[Any] | None = None,
    result_layouts: Sequence[Any] | None = None,
    backend_config: Mapping[str, Any] | str | None = None,
    skip_ffi_layout_processing: bool = False,
    **lowering_args: Any,
) -> Callable[..., Any]:
    """A lowering rule that calls a native function, for a primitive of one's own.

    Args:
      call_target_name: the name under which the function is registered.
      operand_layouts, result_layouts: for each array its axes, **fastest first**, a ``Layout``, or
        ``None`` for row-major.
      backend_config: attributes in place of the primitive's parameters, or the text that functions
        of the earlier interfaces receive.
      skip_ffi_layout_processing: leave the layouts to XLA, whose default is row-major.
      lowering_args: ``api_version`` (4), ``has_side_effect``, ``operand_output_aliases``
        (``{operand: result}``), ``called_computations`` (jaxprs) and ``extra_attributes``.

    Returns:
      A rule ``(ctx, *operands, **params)``. The parameters are the attributes.

    Raises:
      TypeError, ValueError: for options that do not exist or do not fit.

    >>> import numpy as np
    >>> from primax_core import jit
    >>> from primax_core.extend import Primitive, abstract, lower
    >>> halve_p = Primitive("halve")
    >>> _ = halve_p.rule(abstract)(lambda x, *, times: x)
    >>> _ = halve_p.rule(lower)(ffi_lowering("acme_halve"))
    """
    build = build_ffi_lowering_function(
        call_target_name,
        operand_layouts=operand_layouts,
        result_layouts=result_layouts,
        backend_config=backend_config,
        skip_ffi_layout_processing=skip_ffi_layout_processing,
        **lowering_args,
    )

    def rule(ctx: Any, *operands: Any, **params: Any) -> Any:
        outs = build(ctx, *operands, **params)
        return outs if _core_context(ctx).eqn.primitive.multiple_results else outs[0]

    return rule


def build_ffi_lowering_function(
    call_target_name: str,
    *,
    operand_layouts: Sequence[Any] | None = None,
    result_layouts: Sequence[Any] | None = None,
    backend_config: Mapping[str, Any] | str | None = None,
    skip_ffi_layout_processing: bool = False,
    **lowering_args: Any,
) -> Callable[..., Results]:
    """A function that emits a call of a native function, for use in lowering rules.

    Args:
      call_target_name, operand_layouts, result_layouts, backend_config,
      skip_ffi_layout_processing, lowering_args: as for :func:`ffi_lowering`.

    Returns:
      A function ``(ctx, *operands, **attributes)`` of the rule's context and of MLIR values. It
      returns the values of the results, a list; ``.results`` is the list itself.
    """
    unknown = {*lowering_args} - _OPTIONS
    if unknown:
        raise TypeError(
            f"the lowering of {call_target_name!r} has the unknown options {sorted(unknown)}: "
            f"there are {', '.join(sorted(_OPTIONS))}"
        )
    options = dict(lowering_args)
    version = options.pop("api_version", _TYPED)
    aliases = options.pop("operand_output_aliases", None)
    if skip_ffi_layout_processing and (operand_layouts is not None or result_layouts is not None):
        raise ValueError(
            f"the lowering of {call_target_name!r} has layouts, which "
            "skip_ffi_layout_processing=True leaves to XLA: leave one of the options out"
        )
    layouts: dict[str, Any] = {
        "operand_layouts": _fastest_first(operand_layouts),
        "result_layouts": _fastest_first(result_layouts),
    }

    def build(ctx: Any, *operands: Any, **params: Any) -> Results:
        if params and version != _TYPED:
            raise ValueError(
                f"the lowering of {call_target_name!r} has the attributes {sorted(params)} and "
                f"api_version={version}: functions of the earlier interfaces receive a text, "
                "backend_config"
            )
        core = _core_context(ctx)
        check_known(call_target_name, core.platform, core.eqn and core.eqn.source)
        typed = version == _TYPED
        attributes = params if backend_config is None else backend_config
        outs = native.call(
            core,
            call_target_name,
            operands,
            core.out_avals if core is ctx else ctx.avals_out,
            api_version=version,
            attributes=attributes if typed and not isinstance(attributes, str) else None,
            backend_config=backend_config if isinstance(backend_config, str) else None,
            input_output_aliases=aliases,
            **layouts,
            **options,
        )
        return Results(outs)

    return build


def _core_context(ctx: Any) -> Any:
    """The core's context; rules in the reference's convention have it as an attribute."""
    return getattr(ctx, "core", ctx)


def _fastest_first(layouts: Sequence[Any] | None) -> list[Any] | None:
    if layouts is None:
        return None
    return [x.major_to_minor[::-1] if isinstance(x, Layout) else x for x in layouts]
