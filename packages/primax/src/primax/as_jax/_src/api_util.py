"""Utilities for the arguments of transformations."""

import inspect as _inspect
from collections.abc import Sequence as _Sequence

from primax.api_util import *
from primax.api_util import debug_info as debug_info


def infer_argnums_and_argnames(
    sig: _inspect.Signature,
    argnums: int | _Sequence[int] | None,
    argnames: str | _Sequence[str] | None,
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Return positions and names of arguments; those that are not given follow from the others."""
    if argnums is not None:
        argnums = (argnums,) if isinstance(argnums, int) else tuple(argnums)
    if argnames is not None:
        argnames = (argnames,) if isinstance(argnames, str) else tuple(argnames)
    parameters = list(sig.parameters.values())
    both = _inspect.Parameter.POSITIONAL_OR_KEYWORD
    if argnums is None:
        names = argnames or ()
        argnums = tuple(i for i, p in enumerate(parameters) if p.kind is both and p.name in names)
    elif argnames is None:
        named = [p.name for i, p in enumerate(parameters) if p.kind is both and i in argnums]
        argnames = tuple(named)
    return argnums, argnames or ()
