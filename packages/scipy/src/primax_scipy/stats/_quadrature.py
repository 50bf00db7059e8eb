"""Entropies without closed form, by quadrature over probabilities."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from primax_core import lax

from .._elementary import is_double

_NODES: Final = 96


def entropy_of_density(
    logpdf: Callable[..., Any], ppf: Callable[..., Any], isf: Callable[..., Any]
) -> Callable[..., Any]:
    """Differential entropy: the mean of ``-logpdf`` at the quantiles of all probabilities.

    Each half is integrated with a Gauss-Legendre rule in ``t``, where the probability is
    ``t^8 / 2``: the logarithmic singularity at the ends of the support becomes smooth.
    """

    def entropy(*shapes: Any) -> Any:
        nodes, weights = np.polynomial.legendre.leggauss(_NODES if is_double(shapes[0]) else 32)
        t = 0.5 * (nodes + 1)
        p, w = 0.5 * t**8, 0.5 * weights * 4 * t**7

        def add(i: Any, total: Any) -> Any:
            at = lax.full_like(total, 1) * lax.dynamic_index_in_dim(table[0], i, 0, False)
            weight = lax.dynamic_index_in_dim(table[1], i, 0, False)
            logs = logpdf(ppf(at, *shapes), *shapes) + logpdf(isf(at, *shapes), *shapes)
            return total - weight * logs

        dtype = np.float64 if is_double(shapes[0]) else np.float32
        table = [
            lax.full_like(shapes[0], 0, shape=(len(p),)) + np.asarray(v, dtype) for v in (p, w)
        ]
        return lax.fori_loop(0, len(p), add, lax.full_like(shapes[0], 0))

    return entropy
