"""Train a small network on scikit-learn's handwritten digits and plot the result.

    pip install "primax[numpy]" -r examples/requirements.txt
    python examples/digits.py --output digits.png

scikit-learn contains the 1,797 images of 8 x 8 pixels, so nothing is downloaded. The network has
one hidden layer. Its loss is written for one image and mapped over a batch with ``vmap``. Adam is
implemented with a few calls of ``tree.map``. Exit status 1 if the test accuracy is below 96 %.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from sklearn.datasets import load_digits

import primax
import primax.numpy as jnp
from primax import random

HIDDEN = 128
BATCH = 64
EPOCHS = 40
LEARNING_RATE = 2e-3
REQUIRED_ACCURACY = 0.96


class State(NamedTuple):
    """Parameters, Adam's two moment estimates, and the step count."""

    params: Any
    mean: Any
    square: Any
    count: Any


class Split(NamedTuple):
    """Images as rows of 64 pixels in [0, 1], and their labels."""

    images: np.ndarray
    digits: np.ndarray


def load(key: Any) -> tuple[Split, Split]:
    """Return the shuffled data: four fifths for training, one fifth for testing."""
    data = load_digits()
    order = np.asarray(random.permutation(key, len(data.target)))
    images = (data.data[order] / 16.0).astype(np.float32)
    digits = data.target[order].astype(np.int32)
    cut = len(digits) * 4 // 5
    return Split(images[:cut], digits[:cut]), Split(images[cut:], digits[cut:])


def initial(key: Any, widths: tuple[int, ...]) -> list[dict[str, Any]]:
    """Initialize the weights and biases of a network with layers of these ``widths``."""
    keys = random.split(key, len(widths) - 1)
    return [
        {"w": random.normal(k, (m, n)) * (2.0 / m) ** 0.5, "b": jnp.zeros(n)}
        for k, m, n in zip(keys, widths[:-1], widths[1:], strict=True)
    ]


def logits(params: Any, image: Any) -> Any:
    """Compute the scores of the ten digits for one image."""
    *hidden, last = params
    for layer in hidden:
        image = jnp.maximum(image @ layer["w"] + layer["b"], 0.0)
    return image @ last["w"] + last["b"]


def cross_entropy(params: Any, image: Any, digit: Any) -> Any:
    """Negative log-likelihood of the label of one image."""
    scores = logits(params, image)
    scores = scores - jnp.max(scores)
    return jnp.log(jnp.sum(jnp.exp(scores))) - scores[digit]


def loss(params: Any, images: Any, digits: Any) -> Any:
    """Mean cross-entropy of a batch."""
    return jnp.mean(primax.vmap(cross_entropy, in_axes=(None, 0, 0))(params, images, digits))


value_and_grad = primax.jit(primax.value_and_grad(loss))


@primax.jit
def predict(params: Any, images: Any) -> Any:
    """Return the most likely digit of each image."""
    return jnp.argmax(primax.vmap(logits, in_axes=(None, 0))(params, images), axis=-1)


@primax.jit
def update(state: State, grads: Any) -> State:
    """Apply one step of Adam (Kingma and Ba, 2015, algorithm 1)."""
    tree_map = primax.tree.map
    count = state.count + 1
    mean = tree_map(lambda m, g: 0.9 * m + 0.1 * g, state.mean, grads)
    square = tree_map(lambda s, g: 0.999 * s + 0.001 * g * g, state.square, grads)
    rate = LEARNING_RATE * jnp.sqrt(1.0 - 0.999**count) / (1.0 - 0.9**count)
    params = tree_map(
        lambda p, m, s: p - rate * m / (jnp.sqrt(s) + 1e-8), state.params, mean, square
    )
    return State(params, mean, square, count)


def batches(key: Any, data: Split) -> Iterator[Split]:
    """Yield shuffled training batches of size ``BATCH``; drop an incomplete last batch."""
    order = np.asarray(random.permutation(key, len(data.digits)))
    for start in range(0, len(order) - BATCH + 1, BATCH):
        rows = order[start : start + BATCH]
        yield Split(data.images[rows], data.digits[rows])


class Run(NamedTuple):
    """Results of training."""

    params: Any
    losses: list[float]
    first_step: float
    steps_per_second: float


def train(key: Any, data: Split, console: Console) -> Run:
    """Train a network, with a progress bar."""
    start = time.perf_counter()
    key, subkey = random.split(key)
    params = initial(subkey, (data.images.shape[1], HIDDEN, 10))
    zeros = primax.tree.map(jnp.zeros_like, params)
    state = State(params, zeros, zeros, jnp.zeros(()))
    pending: list[Any] = []
    first_step = 0.0
    steps = EPOCHS * (len(data.digits) // BATCH)
    columns = (
        TextColumn("training"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("loss {task.fields[loss]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("training", total=steps, loss="-")
        for _ in range(EPOCHS):
            key, subkey = random.split(key)
            for batch in batches(subkey, data):
                value, grads = value_and_grad(state.params, batch.images, batch.digits)
                state = update(state, grads)
                pending.append(value)
                if not first_step:
                    primax.block_until_ready(state)
                    first_step = time.perf_counter() - start
                progress.advance(task)
            progress.update(task, loss=f"{float(pending[-1]):.4f}")
    primax.block_until_ready(state)
    rest = time.perf_counter() - start - first_step
    losses = [float(value) for value in pending]
    return Run(state.params, losses, first_step, (steps - 1) / rest)


def draw(path: Path, run: Run, test: Split, predicted: np.ndarray, accuracy: float) -> None:
    """Plot the loss curve and sixteen predictions, the wrong ones first, to a PNG file."""
    wrong = np.flatnonzero(predicted != test.digits)
    right = np.flatnonzero(predicted == test.digits)
    shown = np.concatenate([wrong[:6], right])[:16]
    figure = plt.figure(figsize=(11, 5), layout="constrained")
    left, grid = figure.subfigures(1, 2, width_ratios=(6, 5))
    axes = left.subplots()
    axes.plot(run.losses, color="tab:blue", linewidth=0.8)
    axes.set(xlabel="step", ylabel="cross-entropy of the batch", yscale="log", title="loss")
    grid.suptitle(f"{accuracy:.1%} of {len(test.digits)} test images classified correctly")
    for axes, index in zip(grid.subplots(4, 4).flat, shown, strict=True):
        axes.imshow(test.images[index].reshape(8, 8), cmap="gray_r")
        guess, truth = predicted[index], test.digits[index]
        note = f"{guess}" if guess == truth else f"{guess} ({truth})"
        axes.set_title(note, color="tab:green" if guess == truth else "tab:red", fontsize=10)
        axes.axis("off")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)


def main() -> int:
    """Train, test, report and plot."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--output", type=Path, default=Path("build/demo/digits.png"))
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    console = Console()
    data_key, train_key = random.split(random.PRNGKey(options.seed))
    data, test = load(data_key)
    run = train(train_key, data, console)
    predicted = np.asarray(predict(run.params, test.images))
    accuracy = float(np.mean(predicted == test.digits))
    draw(options.output, run, test, predicted, accuracy)
    console.print(f"final loss          {np.mean(run.losses[-20:]):.4f} (from {run.losses[0]:.4f})")
    console.print(f"test accuracy       {accuracy:.2%} of {len(test.digits)} images")
    console.print(f"time to first step  {run.first_step:.2f} s")
    console.print(f"steps per second    {run.steps_per_second:.0f}")
    console.print(f"picture             {options.output}")
    if accuracy < REQUIRED_ACCURACY:
        console.print(f"[red]below the required {REQUIRED_ACCURACY:.0%}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
