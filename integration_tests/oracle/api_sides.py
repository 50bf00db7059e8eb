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
import primax_core.ad_checkpoint
import primax_core.custom_batching
import primax_core.custom_derivatives
import primax_core.flatten_util
from primax_core.errors import (
    ConcretizationTypeError,
    TracerArrayConversionError,
    TracerBoolConversionError,
    TracerIntegerConversionError,
    UnexpectedTracerError,
)

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
    side.ravel_pytree = library.flatten_util.ravel_pytree
    side.zero_from_primal = library.custom_derivatives.zero_from_primal
    return side


OURS: Final = _side(px)
THEIRS: Final = _side(jax)
OURS.array, OURS.Array = (lambda x: px.device_put(np.asarray(x))), px.Array
THEIRS.array, THEIRS.Array = (lambda x: jax.device_put(np.asarray(x))), jax.Array

_CLASSES: Final = {
    cls.__name__: (cls, getattr(jax.errors, cls.__name__))
    for cls in (
        ConcretizationTypeError,
        TracerArrayConversionError,
        TracerBoolConversionError,
        TracerIntegerConversionError,
        UnexpectedTracerError,
    )
}


def error_of(case: Callable, side: SimpleNamespace) -> BaseException:
    """The error that a case raises."""
    try:
        case(side)
    except Exception as error:
        return error
    raise AssertionError("no error was raised")


def check_class(error: BaseException, wanted: type | str, ours: bool) -> None:
    """Assert the class of an error: a builtin one, or one of the tracer errors by its name."""
    cls = _CLASSES[wanted][0 if ours else 1] if isinstance(wanted, str) else wanted
    assert isinstance(error, cls), f"{type(error).__name__}: {error}"


def check_phrase(error: BaseException, phrase: str) -> None:
    """Assert that a message contains a phrase, however it is broken into lines."""
    text = re.sub(r"\s+", " ", str(error))
    assert phrase in text, f"{phrase!r} is not in: {text}"
