"""The benchmark's training step gives the same numbers under jax and under Primax."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from integration_tests.benchmarks import model
from integration_tests.benchmarks.case import Namespace

pytestmark = pytest.mark.optimised

SIZE = model.Size(layers=2, width=16, heads=2, vocabulary=11, length=6, batch=2)


def three_steps(root: str) -> tuple[list[float], list[np.ndarray]]:
    """Losses, and Adam's first moments after the last step."""
    ns = Namespace(root)
    step = ns.jax.jit(model.make_step(ns, SIZE))
    state, tokens, targets = model.make_arguments(ns, SIZE)
    losses: list[Any] = []
    for _ in range(3):
        state, loss = step(state, tokens, targets)
        losses.append(float(loss))
    return losses, [np.asarray(leaf) for leaf in ns.jax.tree.leaves(state[1])]


def test_training_step_agrees_with_jax() -> None:
    expected_losses, expected_means = three_steps("jax")
    losses, means = three_steps("primax")
    np.testing.assert_allclose(losses, expected_losses, rtol=1e-5)
    assert losses[-1] < losses[0]
    for mean, expected in zip(means, expected_means, strict=True):
        assert mean.dtype == expected.dtype
        np.testing.assert_allclose(mean, expected, rtol=1e-3, atol=1e-6)
