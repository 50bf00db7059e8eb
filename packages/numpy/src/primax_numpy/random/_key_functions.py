"""Calls of the functions of an implementation, with checks of what they return.

The functions are traced once for each signature, so a check costs nothing afterwards. Errors name
the function, as those about rules of primitives do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from primax_core.extend import RuleKind, ShapedArray, invalid_result, typeof

from ._ciphers import U32, UNSIGNED
from ._implementations import Implementation

Function = Callable[..., Any]

SIGNATURES: Final[dict[str, RuleKind[Function]]] = {
    name: RuleKind(name, signature)
    for name, signature in (
        ("seed", "(seed) -> uint32[*key_shape]"),
        ("split", "(key, shape) -> uint32[*shape, *key_shape]"),
        ("fold_in", "(key, data) -> uint32[*key_shape]"),
        ("random_bits", "(key, width, shape) -> unsigned integers of the width and shape"),
    )
}
"""The functions of an implementation by their public names."""


class _Owner:
    """The implementation in place of a primitive, in the text of an error."""

    multiple_results = False

    def __init__(self, name: str) -> None:
        self.name = name


def seeded(impl: Implementation, seed: Any) -> Any:
    """The words of the key of a seed."""
    return _checked(impl, "seed", impl.seed, impl.seed(seed), impl.key_shape)


def split(impl: Implementation, key: Any, shape: tuple[int, ...]) -> Any:
    """The words of keys derived from a key."""
    words = impl.split(key, shape)
    return _checked(impl, "split", impl.split, words, (*shape, *impl.key_shape))


def folded_in(impl: Implementation, key: Any, data: Any) -> Any:
    """The words of the key derived from a key and a number."""
    return _checked(impl, "fold_in", impl.fold_in, impl.fold_in(key, data), impl.key_shape)


def drawn_bits(impl: Implementation, key: Any, width: int, shape: tuple[int, ...]) -> Any:
    """Random integers of a width from a key."""
    out = impl.bits(key, width, shape)
    return _checked(impl, "random_bits", impl.bits, out, shape, UNSIGNED[width])


def _checked(
    impl: Implementation,
    name: str,
    function: Function,
    out: Any,
    shape: tuple[Any, ...],
    dtype: np.dtype = U32,
) -> Any:
    """The result of a function of an implementation.

    Raises:
      RuleResultError: if it is not an array of the shape and dtype.
    """
    try:
        aval = typeof(out)
    except TypeError:
        aval = None
    if aval is None or aval.shape != tuple(shape) or aval.dtype != dtype:
        owner: Any = _Owner(impl.name)
        returned = repr(out) if aval is None else f"a value of type {aval.str_short()}"
        expected = ShapedArray(tuple(shape), dtype).str_short()
        problem = f"returned {returned} where the type is {expected}"
        invalid_result(owner, SIGNATURES[name], function, problem)
    return out
