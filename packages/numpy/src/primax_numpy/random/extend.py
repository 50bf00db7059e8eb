"""Random bit generators of other packages.

:func:`define_prng_impl` makes an implementation from four functions, :func:`register_prng_impl`
gives it a name, and :func:`check_prng_impl` tests it. ``docs/extending/prng.md`` is a tutorial.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any, Final

from primax_core.extend import summarize_function
from primax_core.extend.runtime import add_choice, new_lock

from ._implementations import Implementation, implementations
from ._key_dtypes import register_dtype
from ._key_functions import SIGNATURES
from ._prng_checks import check_prng_impl as check_prng_impl

__all__ = ["check_prng_impl", "define_prng_impl", "register_prng_impl", "registered_prng_impls"]

_lock: Final = new_lock()


def define_prng_impl(
    *,
    name: str,
    tag: str,
    key_shape: tuple[int, ...],
    seed: Callable[[Any], Any],
    split: Callable[[Any, tuple[int, ...]], Any],
    random_bits: Callable[[Any, int, tuple[int, ...]], Any],
    fold_in: Callable[[Any, Any], Any],
    counted: bool = True,
) -> Implementation:
    """A key implementation from its functions, for ``random.key(seed, impl=...)``.

    The functions are traced, once for each signature, and mapped over arrays of keys. What they
    return is checked there.

    Args:
      name: the name of the implementation, for :func:`register_prng_impl`.
      tag: the abbreviation in dtypes, as in ``key<tag>``.
      key_shape: the shape of one key, an array of ``uint32``; at least one axis.
      seed: ``(integer scalar) -> uint32[*key_shape]``. The integer is of any integer dtype.
      split: ``(key, shape) -> uint32[*shape, *key_shape]``.
      random_bits: ``(key, width, shape) -> uint{width}[*shape]``, for 8, 16, 32 and 64 bits.
      fold_in: ``(key, uint32 scalar) -> uint32[*key_shape]``.
      counted: a batch of keys draws the numbers that each key draws alone. False for generators
        on ``lax.rng_bit_generator``, whose bits depend on the batch.

    Raises:
      TypeError: if an argument has the wrong type, or a function takes another number of
        arguments.
      ValueError: if ``key_shape`` has no axis, or one of length 0; if ``name`` or ``tag`` is empty.
    """
    for what, text in (("name", name), ("tag", tag)):
        if not isinstance(text, str):
            raise TypeError(f"the {what} of a PRNG is a string, got {text!r}")
        if not text:
            raise ValueError(f"the {what} of a PRNG is empty")
    if not isinstance(key_shape, (tuple, list)) or not all(type(d) is int for d in key_shape):
        raise TypeError(f"key_shape is a tuple of integers, got {key_shape!r}")
    if not key_shape or min(key_shape) < 1:
        raise ValueError(
            f"key_shape={key_shape!r}: a key has at least one axis, of length 1 or more; use (1,) "
            "for a key of one word"
        )
    functions = {"seed": seed, "split": split, "fold_in": fold_in, "random_bits": random_bits}
    for part, function in functions.items():
        SIGNATURES[part].check(function)
    return Implementation(
        name, tag, tuple(key_shape), seed, split, fold_in, random_bits, bool(counted)
    )


def register_prng_impl(impl: Implementation) -> Implementation:
    """Register an implementation by name.

    Afterwards functions with an argument ``impl`` and the option ``default_prng_impl`` accept the
    name, and keys of the implementation can be pickled and exported. Registering an equal
    implementation (the same name, tag, key shape and functions) again changes nothing.

    Args:
      impl: the result of :func:`define_prng_impl`.

    Returns:
      The implementation that is registered under the name.

    Raises:
      TypeError: if it is not an implementation.
      ValueError: if another implementation has the name or the tag.
    """
    if not isinstance(impl, Implementation):
        raise TypeError(f"register_prng_impl takes a result of define_prng_impl, got {impl!r}")
    with _lock:
        for other in implementations.values():
            if _equal(impl, other):
                return other
            for what in ("name", "tag"):
                text = getattr(impl, what)
                if text == getattr(other, what):
                    raise ValueError(
                        f"a PRNG with the {what} {text!r} is registered already: {other.name!r}, "
                        f"whose seed function is {summarize_function(other.seed)}; choose "
                        f"another {what}"
                    )
        register_dtype(impl.dtype)
        implementations[impl.name] = impl
        add_choice("default_prng_impl", impl.name)
    return impl


def _equal(impl: Implementation, other: Implementation) -> bool:
    return all(getattr(impl, f.name) == getattr(other, f.name) for f in fields(Implementation))


def registered_prng_impls() -> tuple[str, ...]:
    """The names of all implementations, those of this package first.

    >>> registered_prng_impls()[:3]
    ('threefry2x32', 'rbg', 'unsafe_rbg')
    """
    return tuple(implementations)
