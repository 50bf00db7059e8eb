"""Results of minimizers."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from primax_core.extend import Tracer

_MESSAGES: Final = {
    0: "Optimization terminated successfully.",
    1: "Maximum number of iterations has been exceeded.",
    2: "Maximum number of function evaluations has been exceeded.",
    3: "No step along the last direction decreased the function.",
    4: "The function or its derivative is not finite.",
}


def message_of(status: Any, messages: dict[int, str]) -> str:
    """The message of a status.

    Raises:
      ValueError: if the status is traced or has several elements.
    """
    if isinstance(status, Tracer) or np.size(status) != 1:
        raise ValueError(
            "message needs the value of one status: read it outside of jit and vmap, or compare "
            "the field status"
        )
    return messages[int(status)]


class OptimizeResults(NamedTuple):
    """The result of a minimization.

    Attributes:
      x: the point ``[n]``.
      success: true if the method converged.
      status: 0; 1 if the maximum number of steps was reached; 2 if that of function evaluations was
        reached; 3 if no step along the last direction decreased the function; 4 if a value or
        derivative is not finite.
      fun: the value of the function.
      jac: the gradient ``[n]``; None for a method without derivatives.
      hess_inv: an approximation of the inverse Hessian ``[n, n]``, by ``BFGS`` only.
      nfev, njev, nit: the numbers of function evaluations, gradient evaluations and steps.
    """

    x: Any
    success: Any
    status: Any
    fun: Any
    jac: Any
    hess_inv: Any
    nfev: Any
    njev: Any
    nit: Any

    @property
    def message(self) -> str:
        """The status in words."""
        return message_of(self.status, _MESSAGES)
