"""Public functions for references, and ``run_state``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._base import pytree
from .._base.source import api_boundary_of
from .._ir.ref_types import AbstractRef as AbstractRef
from .._trace.refs import Ref as Ref
from ..lax.references import loaded as loaded
from ..lax.references.access import (
    addupdate as addupdate,
    empty_ref as empty_ref,
    free_ref as free_ref,
    freeze as freeze,
    get as get,
    new_ref as new_ref,
    set as set,
    swap as swap,
)
from .arguments import check_callable


def run_state(body: Callable[..., Any]) -> Callable[..., Any]:
    """A pure function from a function that modifies references.

    Args:
      body: takes a pytree of references and returns ``None``.

    Returns:
      A function of a pytree of arrays that returns the final contents of references to them. It
      can be transformed.

    Raises:
      ValueError: if ``body`` returns something.

    >>> import numpy as np
    >>> def accumulate(refs):
    ...     refs["total"][...] += refs["x"][0]
    >>> out = run_state(accumulate)({"total": np.float32(1), "x": np.ones(2, np.float32)})
    >>> float(out["total"])
    2.0
    """
    check_callable(body)

    @api_boundary_of(body)
    def run(init: Any) -> Any:
        leaves, tree = pytree.tree_flatten(init)
        refs = [new_ref(x) for x in leaves]
        returned = body(pytree.tree_unflatten(tree, refs))
        if returned is not None:
            raise ValueError(
                f"the function passed to run_state returned a value of type {type(returned)}: it "
                "must modify the references that it receives, and return None"
            )
        return pytree.tree_unflatten(tree, [freeze(r) for r in refs])

    return run
