"""Checks of derivatives, under a well-known module name; see :mod:`primax_core.testing`."""

from .testing.gradients import (
    check_grads as check_grads,
    check_jvp as check_jvp,
    check_vjp as check_vjp,
)
