"""Checks of jaxprs that XLA evaluates for single elements, within a reduction or a scatter."""

from __future__ import annotations

from typing import Final

from .._ir.effects import must_stay
from .._ir.jaxpr import Jaxpr, jaxprs_in

_REFUSED: Final = frozenset((
    "cholesky", "cholesky_update", "divided_ffi_call", "eig", "eigh", "ffi_call", "fft", "geqp3",
    "geqrf", "hessenberg", "householder_product", "lu", "ormqr", "pure_callback", "qr",
    "rng_bit_generator", "rng_uniform", "schur", "sort", "svd", "symmetric_product",
    "triangular_solve", "tridiagonal", "tridiagonal_solve",
))  # fmt: skip


def check_for_elements(name: str, jaxpr: Jaxpr) -> None:
    """Refuse operations that abort the process if XLA evaluates them for single elements.

    Raises:
      NotImplementedError: for callbacks and other effects, sorting, random bits, and library
        calls.
    """
    for eqn in jaxpr.eqns:
        if eqn.primitive.name in _REFUSED or must_stay(eqn.effects) and not jaxprs_in(eqn.params):
            raise NotImplementedError(
                f"the function given to {name} combines single elements inside XLA, which cannot "
                f"do {eqn.primitive.name} there: compute it before or after, or loop with scan"
            )
        for sub_jaxpr in jaxprs_in(eqn.params):
            check_for_elements(name, sub_jaxpr)
