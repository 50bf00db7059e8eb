"""Families of distributions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np

from primax_core import lax
from primax_numpy import random


class Family(NamedTuple):
    """A family of distributions, the parameter of a site. Its functions compare by identity.

    Attributes:
      name: shown in errors.
      draw: ``(key, *parameters) -> value``.
      path: ``(value, *parameters) -> value``: the value as a differentiable function of the
        parameters, the randomness held fixed.
      log_density: ``(value, *parameters) -> log-density``, elementwise.
    """

    name: str
    draw: Callable[..., Any]
    path: Callable[..., Any]
    log_density: Callable[..., Any]

    def __repr__(self) -> str:
        return self.name


def _normal_draw(key: Any, mean: Any, scale: Any) -> Any:
    shape = np.broadcast_shapes(mean.shape, scale.shape)
    return mean + scale * random.normal(key, shape, mean.dtype)


def _normal_path(value: Any, mean: Any, scale: Any) -> Any:
    return mean + scale * lax.stop_gradient((value - mean) / scale)


def _normal_log_density(value: Any, mean: Any, scale: Any) -> Any:
    z = (value - mean) / scale
    return -0.5 * z * z - lax.log(scale) - 0.5 * math.log(2 * math.pi)


normal: Final = Family("normal", _normal_draw, _normal_path, _normal_log_density)
"""The normal distribution: mean and scale."""
