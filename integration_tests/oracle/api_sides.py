"""The two libraries under one set of names, for cases that run on either."""

from __future__ import annotations

import re
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, Final

import jax
import jax.ad_checkpoint
import jax.custom_batching
import jax.custom_derivatives
import jax.flatten_util
import numpy as np

import primax_core as px
from primax_core import errors
from test_support import assert_close

_NAMES: Final = (
    "jit grad value_and_grad vjp jvp linearize linear_transpose jacfwd jacrev hessian custom_jvp "
    "custom_vjp custom_gradient closure_convert checkpoint checkpoint_policies vmap lax make_jaxpr "
    "eval_shape named_scope disable_jit checking_leaks ensure_compile_time_eval tree tree_util "
    "fwd_and_bwd device_put ShapeDtypeStruct devices enable_x64"
).split()


def _side(library: Any) -> SimpleNamespace:
    side = SimpleNamespace(**{name: getattr(library, name) for name in _NAMES})
    side.custom_vmap = library.custom_batching.custom_vmap
    side.sequential_vmap = library.custom_batching.sequential_vmap
    side.checkpoint_name = library.ad_checkpoint.checkpoint_name
    side.print_saved_residuals = library.ad_checkpoint.print_saved_residuals
    side.ravel_pytree = library.flatten_util.ravel_pytree
    side.zero_from_primal = library.custom_derivatives.zero_from_primal
    side.Array = library.Array
    side.array = lambda x: library.device_put(np.asarray(x))
    return side


OURS: Final = _side(px)
THEIRS: Final = _side(jax)

Program = Callable[[SimpleNamespace], Any]


def same_results(case: Program) -> None:
    """Assert that both sides give the same trees, shapes, dtypes, weak types and values."""
    ours, our_tree = jax.tree.flatten(case(OURS))
    theirs, their_tree = jax.tree.flatten(case(THEIRS))
    assert our_tree == their_tree, f"{our_tree} and {their_tree}"
    for i, (o, t) in enumerate(zip(ours, theirs)):
        if isinstance(t, (str, type)):
            assert o == t, f"leaf {i}: {o!r} and {t!r}"
            continue
        assert np.shape(o) == np.shape(t), f"leaf {i}: shapes {np.shape(o)} and {np.shape(t)}"
        if isinstance(t, (int, float, complex, np.generic)):
            # The reference returns some numbers unchanged, or as scalars with a dtype.
            assert complex(np.asarray(o)) == complex(t), f"leaf {i}"
            continue
        assert o.dtype == t.dtype, f"leaf {i}: dtypes {o.dtype} and {t.dtype}"
        weak = bool(getattr(o, "weak_type", False)), bool(getattr(t, "weak_type", False))
        assert weak[0] == weak[1], f"leaf {i}: weak types {weak}"
        if o.dtype != jax.dtypes.float0:
            assert_close(o, t, rtol=1e-5, atol=1e-6, err_msg=f"leaf {i}")


def same_error(case: Program, expected: type | str, phrases: tuple[str, ...]) -> None:
    """Assert that a case raises equivalent errors on both sides.

    Args:
      expected: a builtin class, or the name of one of the tracer errors.
      phrases: phrases that both messages contain, ignoring line breaks. The name JAX in them is
        Primax in the messages of this library.
    """
    for side, ours in ((OURS, True), (THEIRS, False)):
        error = _error_of(case, side)
        cls = expected
        if isinstance(expected, str):
            cls = getattr(errors if ours else jax.errors, expected)
        assert isinstance(error, cls), f"{type(error).__name__}: {error}"
        text = re.sub(r"\s+", " ", str(error))
        for phrase in phrases:
            phrase = phrase.replace("JAX", "Primax") if ours else phrase
            assert phrase in text, f"{phrase!r} is not in {text!r}"


def _error_of(case: Program, side: SimpleNamespace) -> Exception:
    try:
        case(side)
    except Exception as error:
        return error
    raise AssertionError("no error was raised")
