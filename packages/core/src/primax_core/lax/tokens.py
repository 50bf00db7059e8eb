"""Tokens: values without content that order operations."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from .._ir import dtypes
from .._ir.avals import ShapedArray
from .._ir.primitive import Primitive, abstract, batch, lower
from .._ir.samples import Sample, samples
from .._lower.lazy import hlo, shaped
from .._trace.core import typeof
from .elementwise import no_derivative

create_token_p: Final = Primitive("create_token")
after_all_p: Final = Primitive("after_all")


class token(dtypes.extended):
    """Scalar class of tokens."""


class TokenDType(dtypes.ExtendedDType):
    """The dtype of tokens; they take no memory."""

    __slots__ = ()
    type: Any = token
    name = "token"
    itemsize = 0

    def physical_aval(self, aval: ShapedArray) -> ShapedArray:
        """The type of the array that stores a token: an array without elements."""
        return ShapedArray((*aval.shape, 0), np.dtype(np.bool_))

    def repr_of(self, array: Any) -> str:
        """The ``repr`` of an array of tokens."""
        return "Token()"

    def __eq__(self, other: object) -> bool:
        return type(other) is TokenDType

    def __hash__(self) -> int:
        return hash(TokenDType)

    def __repr__(self) -> str:
        return self.name

    __str__ = __repr__


_TOKEN: Final = ShapedArray((), TokenDType())


def create_token(_: Any = None) -> Any:
    """A new token, without dependencies.

    A token orders operations that have no other dependency: it is an operand of one and a result
    of the other.

    Args:
      _: ignored.

    Returns:
      A token.

    Programs rarely need tokens: ordered effects have them without being asked. A token has no
    derivative and no elements.

    >>> create_token()
    Token()
    >>> from primax_core import make_jaxpr
    >>> str(make_jaxpr(create_token)().eqns[0].primitive)
    'create_token'
    """
    return create_token_p.bind()


def after_all(*operands: Any) -> Any:
    """A token that depends on others.

    An operation with this token runs after all operations that the tokens come from.

    Args:
      operands: tokens; none gives a token without dependencies.

    Returns:
      A token.

    Raises:
      TypeError: if an operand is not a token.

    Tokens have no derivative. See :func:`create_token`.

    >>> after_all(create_token(), create_token())
    Token()
    """
    for x in operands:
        if not isinstance(typeof(x).dtype, TokenDType):
            raise TypeError("Arguments to after_all must be tokens")
    return after_all_p.bind(*operands)


@create_token_p.rule(abstract)
def _create_token_abstract():
    return _TOKEN


@create_token_p.rule(lower)
def _create_token_lower(ctx):
    return shaped.zeros_of(_TOKEN)


@after_all_p.rule(abstract)
def _after_all_abstract(*tokens):
    return _TOKEN


@after_all_p.rule(lower)
def _after_all_lower(ctx, *tokens):
    if not tokens:
        return shaped.zeros_of(_TOKEN)
    return hlo.OptimizationBarrierOp(tokens).results[0]


no_derivative(create_token_p)
no_derivative(after_all_p)


@after_all_p.rule(batch)
def _after_all_batch(axis, args, dims):
    # The result depends on all examples of a batch.
    return after_all_p.bind(*args), None


create_token_p.unsupported(batch, "it has no operands that could be mapped")


_UNSEEN: Final = {"abstract": "tokens have no values to compare"}


def _nothing(outs: Any) -> list:
    return []


@create_token_p.rule(samples)
def _create_token_samples():
    yield Sample().set(observe=_nothing, without=_UNSEEN)


@after_all_p.rule(samples)
def _after_all_samples():
    waiting = {"call": lambda: after_all(create_token(), create_token())}
    yield Sample().set(**waiting, observe=_nothing, without=_UNSEEN)
