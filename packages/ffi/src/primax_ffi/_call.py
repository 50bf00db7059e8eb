"""Calls of native functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from primax_core.extend import ShapedArray, typeof
from primax_core.extend.runtime import api_boundary, as_result
from primax_core.layout import Layout

from . import _types
from ._attributes import frozen_attributes
from ._call_p import divided_ffi_call_p, ffi_call_p
from ._partitioning import division
from ._signatures import Signature
from ._targets import signature_of
from ._vmapping import METHODS

_TYPED: Final = 4


@api_boundary
def ffi_call(
    target_name: str,
    result_shape_dtypes: Any = None,
    *,
    has_side_effect: bool = False,
    vmap_method: str | Callable[..., Any] | None = None,
    input_layouts: Sequence[Any] | None = None,
    output_layouts: Layout | Sequence[int] | Sequence[Layout | Sequence[int] | None] | None = None,
    input_output_aliases: Mapping[int, int] | None = None,
    custom_call_api_version: int = _TYPED,
    legacy_backend_config: str | bytes | None = None,
    ordered: bool = False,
    partition: str | None = None,
) -> Callable[..., Any]:
    """A function that calls a native function, also in compiled programs.

    Args:
      target_name: the name under which it is registered, see :func:`register_ffi_target`.
      result_shape_dtypes: the type of the result: a ``ShapeDtypeStruct``, another object with
        ``shape`` and ``dtype``, or ``abstract_token``; a sequence of them for several results.
        Without it, the types follow from the signature that was registered with the function.
      has_side_effect: run the call even if its results are unused.
      vmap_method: behaviour under ``vmap``. ``"sequential"`` calls the function for each example,
        ``"sequential_unrolled"`` in an unrolled loop; ``"expand_dims"`` and ``"broadcast_all"``
        call it once, with a leading axis on all operands, of length 1 for unmapped operands and
        ``"expand_dims"``. ``"legacy_vectorized"`` leaves unmapped operands unchanged. A function
        ``(axis_size, in_batched, *args, **attributes)`` returns the results and, for each,
        whether it has a leading axis. ``None`` raises an error.
      input_layouts, output_layouts: for each array its axes, slowest first, a ``Layout``, or
        ``None`` for row-major; the layout itself for a single result.
      input_output_aliases: ``{operand: result}``, results that use the memory of operands. XLA
        copies an operand that is used elsewhere. By default those of the signature.
      custom_call_api_version: 4 for typed handlers; 1, 2 and 3 for the earlier interfaces.
      legacy_backend_config: text that functions of the earlier interfaces receive.
      ordered: calls happen in program order, with those of other ordered calls. The handler's
        first argument and result are tokens (``ffi::Token``). Implies ``has_side_effect``.
      partition: axes along which devices divide the call; by default each device calls the function
        with whole operands. ``"batch"`` are the leading axes: with a signature ``...`` or the first
        letter of the results, otherwise the first axis of all arrays. A rule such as
        ``"b n, n -> b n"`` lists the axes of each array: along each of its letters, the part of
        the results must follow from the part of the operands; ``_`` is an axis that stays whole.
        In programs with symbolic sizes, the call is not divided.

    Returns:
      A function of arrays, and of the attributes as keyword arguments: booleans, numbers (Python's
      have 64 bits, NumPy's their own dtype), texts, dtypes, sequences and arrays of numbers with
      one axis, and dictionaries of these. It returns an array, or a list for a sequence of types.

    Raises:
      TypeError, ValueError: if a part of the call does not fit, while tracing.
      LookupError: if no function of this name is registered, when the program is compiled.
      JaxRuntimeError: where a result is used, if the native function returns an error, or takes
        other operands or attributes.

    There is no derivative: define it with ``custom_jvp`` or ``custom_vjp``.

    On several devices each device calls the function with whole operands, unless ``partition`` is
    passed; inside of ``shard_map``, with its parts.

    >>> import numpy as np
    >>> from primax_core import ShapeDtypeStruct, eval_shape
    >>> scale = ffi_call("acme_scale", ShapeDtypeStruct((3,), np.float32))
    >>> eval_shape(lambda x: scale(x, by=np.float32(2)), np.ones(3, np.float32))
    ShapeDtypeStruct(shape=(3,), dtype=float32)
    """
    _check_name(target_name)
    check_method(vmap_method)
    _check_version(target_name, custom_call_api_version, legacy_backend_config)
    signature = signature_of(target_name)
    results, several = None, signature is not None and signature.several
    if result_shape_dtypes is not None or signature is None:
        results, several = _types.result_types(target_name, result_shape_dtypes)
    if not several and output_layouts is not None and _types.is_one_layout(output_layouts):
        output_layouts = [output_layouts]
    if results is not None:
        _types.checked_layouts(target_name, "result", output_layouts, results)
    fixed = {
        "target_name": target_name,
        "has_side_effect": bool(has_side_effect or ordered),
        "ordered": bool(ordered),
        "vmap_method": vmap_method,
        "custom_call_api_version": custom_call_api_version,
        "legacy_backend_config": legacy_backend_config,
    }
    parts = _Parts(
        target_name, signature, results, input_layouts, output_layouts, input_output_aliases,
        partition,
    )  # fmt: skip
    if partition is not None and fixed["has_side_effect"]:
        raise ValueError(
            f"the call of {target_name!r} has side effects, which happen on the first device of a "
            "program, and a partition: leave one of them out, or use shard_map"
        )

    @api_boundary
    def call(*args: Any, **attributes: Any) -> Any:
        operands = [operand(target_name, i, x) for i, x in enumerate(args)]
        if attributes and custom_call_api_version != _TYPED:
            raise ValueError(
                f"{target_name!r} is called with the attributes {sorted(attributes)} and "
                f"custom_call_api_version={custom_call_api_version}: functions of the earlier "
                "interfaces receive a text, legacy_backend_config"
            )
        params = parts.params(operands, attributes)
        primitive = divided_ffi_call_p if "division" in params else ffi_call_p
        outs = primitive.bind(*operands, **fixed, **params)
        return list(outs) if several else outs[0]

    return call


def operand(target: str, i: int, value: Any) -> Any:
    """An operand of a call.

    Raises:
      TypeError: if it is no array.
    """
    try:
        result = as_result(value)
        typeof(result)
        return result
    except TypeError:
        raise TypeError(
            f"operand {i} of {target!r} is a {type(value).__name__}, but native functions take "
            "arrays of numbers: convert it with np.asarray, or pass the arrays that it contains "
            "one by one"
        ) from None


class _Parts(NamedTuple):
    """The parts of a call that depend on its operands, and are checked with them."""

    target: str
    signature: Signature | None
    results: tuple[ShapedArray, ...] | None
    input_layouts: Any
    output_layouts: Any
    aliases: Any
    partition: Any

    def params(self, operands: list[Any], attributes: dict[str, Any]) -> dict[str, Any]:
        """Parameters of the equation.

        Raises:
          TypeError, ValueError: if a part does not fit the operands.
        """
        target, results, aliases = self.target, self.results, self.aliases
        avals = [typeof(x) for x in operands]
        for i, aval in enumerate(avals):
            _types.check_operand(target, i, aval)
        if self.signature is not None:
            inferred = tuple(self.signature.result_types(target, avals))
            if results is not None and results != inferred:
                raise TypeError(
                    f"result_shape_dtypes of {target!r} are {[*results]}, but {[*inferred]} follow "
                    f"from its signature, {self.signature}: leave result_shape_dtypes out"
                )
            results = inferred
            attributes = self.signature.attributes(target, attributes)
            aliases = self.signature.aliases if aliases is None else aliases
        assert results is not None
        in_layouts = _types.checked_layouts(target, "operand", self.input_layouts, avals)
        out_layouts = _types.checked_layouts(target, "result", self.output_layouts, results)
        orders = (in_layouts, out_layouts)
        params: dict[str, Any] = {
            "result_avals": results,
            "attributes": frozen_attributes(target, attributes),
            "input_layouts": in_layouts,
            "output_layouts": out_layouts,
            "input_output_aliases": _types.checked_aliases(target, aliases, avals, results, orders),
        }
        if self.partition is not None:
            own = division(target, self.partition, self.signature, avals, results)
            if own is not None:
                params["division"] = own
        return params


def _check_name(target: Any) -> None:
    if not isinstance(target, str) or not target:
        raise TypeError(f"the name of a native function is a text, not {target!r}")


def check_method(method: Any) -> None:
    """Raise an error for a value that is no ``vmap_method``."""
    if method is not None and not callable(method) and method not in METHODS:
        raise ValueError(
            f"vmap_method is {method!r}: it is one of {[*METHODS, None]}, or a function "
            "(axis_size, in_batched, *args, **attributes)"
        )


def _check_version(target: str, version: Any, text: Any) -> None:
    if version not in (1, 2, 3, _TYPED):
        raise ValueError(
            f"custom_call_api_version of {target!r} is {version!r}: it is 4 for typed handlers, or "
            "1, 2, 3 for the earlier interfaces"
        )
    if text is not None and version == _TYPED:
        raise ValueError(
            f"{target!r} is called with a legacy_backend_config and custom_call_api_version="
            f"{version}, whose functions receive attributes: pass keyword arguments"
        )
    if text is not None and not isinstance(text, (str, bytes)):
        raise TypeError(
            f"legacy_backend_config of {target!r} is a {type(text).__name__}, not a text"
        )
