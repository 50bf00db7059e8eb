"""Custom derivatives of the core, with the reference's parameters of ``custom_gradient``."""

from __future__ import annotations

from primax_core.custom_derivatives import *  # noqa: F403

from ._functions import custom_gradient as custom_gradient
