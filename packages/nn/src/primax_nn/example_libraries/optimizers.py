"""A small library of optimizers.

An optimizer is a triple of functions. ``init_fn(params)`` returns a state, ``update_fn(step,
grads, state)`` the next state, and ``params_fn(state)`` the parameters of a state. Parameters and
gradients are pytrees of equal structure. A state is a pytree, so that updates can be compiled.

>>> from primax_core import grad
>>> init, update, params = adam(step_size=0.1)
>>> state = init({"x": 3.0})
>>> for step in range(100):
...     state = update(step, grad(lambda p: p["x"] ** 2)(params(state)), state)
>>> abs(float(params(state)["x"])) < 0.1
True
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import primax_numpy as pnp
from primax_core import tree
from primax_core.extend import typeof
from primax_core.tree_util import register_pytree_node
from primax_core.typing import ArrayLike, PyTree
from primax_numpy.declaring import compiled

Params = Any
State = Any
Updates = Any
Step = int


class OptimizerState(NamedTuple):
    """The state of an optimizer.

    Attributes:
      packed_state: for each parameter, the list of its arrays.
      tree_def: the structure of the parameters.
      subtree_defs: for each parameter, the structure of its state.
    """

    packed_state: Any
    tree_def: Any
    subtree_defs: Any


register_pytree_node(
    OptimizerState,
    lambda s: ((s.packed_state,), (s.tree_def, s.subtree_defs)),
    lambda aux, children: OptimizerState(children[0], *aux),
)

InitFn = Callable[[Params], OptimizerState]
UpdateFn = Callable[[Step, Updates, OptimizerState], OptimizerState]
ParamsFn = Callable[[OptimizerState], Params]
Schedule = Callable[[Step], Any]


class Optimizer(NamedTuple):
    """The three functions of an optimizer."""

    init_fn: InitFn
    update_fn: UpdateFn
    params_fn: ParamsFn


def optimizer(opt_maker: Callable[..., tuple[Any, Any, Any]]) -> Callable[..., Optimizer]:
    """Decorator that lifts an optimizer of arrays to pytrees.

    Args:
      opt_maker: a function that returns three functions: ``init(x)``, the state of a parameter;
        ``update(step, gradient, state)``, the next state; ``get_params(state)``, the parameter.

    Raises:
      TypeError: in an update, if gradients and parameters have different structures.

    >>> @optimizer
    ... def descent(size):
    ...     return (lambda x: x), (lambda step, g, x: x - size * g), (lambda x: x)
    >>> init, update, params = descent(0.5)
    >>> params(update(0, [2.0], init([3.0])))
    [2.0]
    """

    @functools.wraps(opt_maker)
    def make(*args: Any, **kwargs: Any) -> Optimizer:
        init, update, get_params = opt_maker(*args, **kwargs)

        def init_fn(params: Params) -> OptimizerState:
            leaves, whole = tree.flatten(params)
            return _packed([init(x) for x in leaves], whole)

        def update_fn(step: Any, grads: Updates, state: OptimizerState) -> OptimizerState:
            leaves, grads_def = tree.flatten(grads)
            if grads_def != state.tree_def:
                raise TypeError(
                    "optimizer update function was passed a gradient tree that did not match the "
                    "parameter tree structure with which it was initialized: parameter tree "
                    f"{state.tree_def} and grad tree {grads_def}."
                )
            states = [update(step, g, s) for g, s in zip(leaves, _states(state))]
            new = _packed(states, state.tree_def)
            for i, (before, after) in enumerate(zip(state.subtree_defs, new.subtree_defs)):
                if before != after:
                    raise TypeError(
                        "optimizer update function produced an output structure that did not "
                        f"match its input structure for parameter {i}: input {before} and output "
                        f"{after}."
                    )
            return new

        def params_fn(state: OptimizerState) -> Params:
            return tree.unflatten(state.tree_def, [get_params(s) for s in _states(state)])

        return Optimizer(init_fn, update_fn, params_fn)

    return make


def _packed(states: Sequence[Any], whole: Any) -> OptimizerState:
    flattened = [tree.flatten(s) for s in states]
    return OptimizerState(
        [leaves for leaves, _ in flattened], whole, tuple(t for _, t in flattened)
    )


def _states(state: OptimizerState) -> list[Any]:
    return [tree.unflatten(t, p) for p, t in zip(state.packed_state, state.subtree_defs)]


# Optimizers. The update of a parameter is one compiled call. It takes both b and 1 - b, because
# the # difference would cancel in narrow floats.


@optimizer
def sgd(step_size: Schedule | ArrayLike) -> Any:
    """Stochastic gradient descent.

    Args:
      step_size: a number, or a function of the step, as for all optimizers.
    """
    size = make_schedule(step_size)

    def update(i: Any, g: Any, x: Any) -> Any:
        return _descended(x, g, size(i))

    return (lambda x: x), update, (lambda x: x)


@compiled()
def _descended(x, g, size):
    return x - size * g


@optimizer
def momentum(step_size: Schedule | ArrayLike, mass: ArrayLike) -> Any:
    """Gradient descent with momentum (Polyak, 1964): ``v = mass * v + g``, ``x -= step_size * v``.

    Args:
      mass: the decay factor of the velocity.
    """
    size = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        return _with_momentum(*state, g, size(i), mass)

    return _with_zeros(1), update, _first


@compiled()
def _with_momentum(x, v, g, size, mass):
    v = mass * v + g
    return x - size * v, v


@optimizer
def nesterov(step_size: Schedule | ArrayLike, mass: ArrayLike) -> Any:
    """Accelerated gradient descent (Nesterov, 1983), in the form of Sutskever et al. (2013).

    Args:
      mass: the decay factor of the velocity.
    """
    size = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        return _accelerated(*state, g, size(i), mass)

    return _with_zeros(1), update, _first


@compiled()
def _accelerated(x, v, g, size, mass):
    v = mass * v + g
    return x - size * (mass * v + g), v


@optimizer
def adagrad(step_size: Schedule | ArrayLike, momentum: ArrayLike = 0.9) -> Any:
    """Adagrad: steps divided by the root of the sum of all squared gradients (Duchi et al., 2011).

    Args:
      momentum: the decay factor of the averaged step.
    """
    size = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        return _adagrad(*state, g, size(i), momentum, 1 - momentum)

    return _with_zeros(2), update, _first


@compiled(name="adagrad")
def _adagrad(x, squares, m, g, size, momentum, rest):
    squares = squares + g * g
    m = rest * (g * _inverse_root(squares)) + momentum * m
    return x - size * m, squares, m


def _inverse_root(x: Any) -> Any:
    return pnp.where(x > 0, 1 / pnp.sqrt(pnp.where(x > 0, x, 1)), 0.0)


@optimizer
def rmsprop(step_size: Schedule | ArrayLike, gamma: ArrayLike = 0.9, eps: ArrayLike = 1e-8) -> Any:
    """RMSProp: steps divided by the root of a running mean of squared gradients (Tieleman and
    Hinton, 2012).

    Args:
      gamma: the decay factor of the mean.
      eps: a number added to the mean.
    """
    size = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        return _rmsprop(*state, g, size(i), gamma, 1 - gamma, eps)

    return _with_zeros(1), update, _first


@compiled(name="rmsprop")
def _rmsprop(x, squares, g, size, gamma, rest, eps):
    squares = gamma * squares + rest * (g * g)
    return x - size * g / pnp.sqrt(squares + eps), squares


@optimizer
def rmsprop_momentum(
    step_size: Schedule | ArrayLike,
    gamma: ArrayLike = 0.9,
    eps: ArrayLike = 1e-8,
    momentum: ArrayLike = 0.9,
) -> Any:
    """:func:`rmsprop` with momentum.

    Args:
      gamma: the decay factor of the mean of squares.
      eps: a number added to the mean.
      momentum: the decay factor of the previous step.
    """
    size = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        return _rmsprop_momentum(*state, g, size(i), gamma, 1 - gamma, eps, momentum)

    return _with_zeros(2), update, _first


@compiled(name="rmsprop_momentum")
def _rmsprop_momentum(x, squares, m, g, size, gamma, rest, eps, momentum):
    squares = gamma * squares + rest * (g * g)
    m = momentum * m + size * g / pnp.sqrt(squares + eps)
    return x - m, squares, m


@optimizer
def adam(
    step_size: Schedule | ArrayLike, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8
) -> Any:
    """Adam: steps from running means of gradients and of squared gradients (Kingma and Ba, 2015).

    Args:
      b1, b2: the decay factors of the two means.
      eps: a number added to the root of the second mean.
    """
    size = make_schedule(step_size)
    means = [(b, 1 - b, _log(b)) for b in (b1, b2)]

    def update(i: Any, g: Any, state: Any) -> Any:
        return _adam(*state, g, size(i), i, *means, eps)

    return _with_zeros(2), update, _first


@compiled(name="adam")
def _adam(x, m, v, g, size, i, first, second, eps):
    (b1, rest1, log1), (b2, rest2, log2) = first, second
    m = rest1 * g + b1 * m
    v = rest2 * (g * g) + b2 * v
    unbiased = m / _weight(i, log1)
    root = pnp.sqrt(v / _weight(i, log2))
    return x - size * unbiased / (root + eps), m, v


@optimizer
def adamax(
    step_size: Schedule | ArrayLike, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8
) -> Any:
    """Adamax: :func:`adam` with a decayed maximum of gradients instead of the mean of squares.

    Args:
      b1, b2: the decay factors of the mean and of the maximum.
      eps: a number added to the maximum.
    """
    size = make_schedule(step_size)
    mean = (b1, 1 - b1, _log(b1))

    def update(i: Any, g: Any, state: Any) -> Any:
        return _adamax(*state, g, size(i), i, mean, b2, eps)

    return _with_zeros(2), update, _first


@compiled(name="adamax")
def _adamax(x, m, u, g, size, i, first, b2, eps):
    b1, rest, log = first
    m = rest * g + b1 * m
    u = pnp.maximum(b2 * u, pnp.abs(g))
    return x - (size / _weight(i, log)) * m / (u + eps), m, u


def _log(b: Any) -> Any:
    if isinstance(b, (int, float)):
        return math.log(b) if b > 0 else -math.inf
    return pnp.log(b)


def _weight(i: Any, log_b: Any) -> Any:
    """``1 - b ** (i + 1)``, without cancellation for ``b`` close to 1."""
    return -pnp.expm1((i + 1) * log_b)


@optimizer
def sm3(step_size: Schedule | ArrayLike, momentum: ArrayLike = 0.9) -> Any:
    """SM3: :func:`adagrad` with sums of squares stored only per row of each axis (Anil et al.,
    2019).

    Args:
      momentum: the decay factor of the averaged step.
    """
    size = make_schedule(step_size)

    def init(x: Any) -> Any:
        aval = typeof(x)
        sizes = aval.shape or (1,)
        rows = [pnp.zeros(n, aval.dtype) for n in sizes]
        return x, pnp.zeros_like(x), rows

    def update(i: Any, g: Any, state: Any) -> Any:
        return _sm3(*state, g, size(i), momentum, 1 - momentum)

    return init, update, _first


@compiled(name="sm3")
def _sm3(x, m, rows, g, size, momentum, rest):
    n = typeof(x).ndim
    if n:
        spread = [
            pnp.expand_dims(r, tuple(j for j in range(n) if j != i)) for i, r in enumerate(rows)
        ]
        squares = functools.reduce(pnp.minimum, spread) + g * g
    else:
        squares = rows[0][0] + g * g
    m = rest * (g * _inverse_root(squares)) + momentum * m
    if n:
        rows = [squares.max(axis=tuple(j for j in range(n) if j != i)) for i in range(n)]
    else:
        rows = [pnp.reshape(squares, (1,))]
    return x - size * m, m, rows


def _with_zeros(n: int) -> Callable[[Any], Any]:
    return lambda x: (x, *[pnp.zeros_like(x) for _ in range(n)])


def _first(state: Any) -> Any:
    return state[0]


# Schedules


def constant(step_size: ArrayLike) -> Schedule:
    """A constant schedule.

    >>> constant(0.1)(7)
    0.1
    """
    return lambda i: step_size


def exponential_decay(
    step_size: ArrayLike, decay_steps: ArrayLike, decay_rate: ArrayLike
) -> Schedule:
    """``step_size * decay_rate ** (i / decay_steps)``.

    >>> exponential_decay(0.5, 10, 0.5)(10)
    0.25
    """
    return lambda i: step_size * decay_rate ** (i / decay_steps)


def inverse_time_decay(
    step_size: ArrayLike, decay_steps: ArrayLike, decay_rate: ArrayLike, staircase: bool = False
) -> Schedule:
    """``step_size / (1 + decay_rate * i / decay_steps)``.

    Args:
      staircase: round ``i / decay_steps`` down.
    """
    if staircase:
        return lambda i: step_size / (1 + decay_rate * pnp.floor(i / decay_steps))
    return lambda i: step_size / (1 + decay_rate * i / decay_steps)


def polynomial_decay(
    step_size: ArrayLike, decay_steps: ArrayLike, final_step_size: ArrayLike, power: ArrayLike = 1.0
) -> Schedule:
    """A schedule from ``step_size`` to ``final_step_size`` in ``decay_steps`` steps, as a power of
    the remaining fraction of steps."""

    def schedule(i: Any) -> Any:
        left = 1 - pnp.minimum(i, decay_steps) / decay_steps
        return (step_size - final_step_size) * left**power + final_step_size

    return schedule


def piecewise_constant(
    boundaries: ArrayLike | Sequence[ArrayLike], values: ArrayLike | Sequence[ArrayLike]
) -> Schedule:
    """A piecewise constant schedule.

    Args:
      boundaries: the last step of each piece except the last piece.
      values: the values of the pieces, one more than boundaries.

    Raises:
      ValueError: if the numbers do not match, or an argument has more than one axis.

    >>> float(piecewise_constant([5], [1.0, 0.5])(6))
    0.5
    """
    boundaries, values = pnp.asarray(boundaries), pnp.asarray(values)
    if not boundaries.ndim == values.ndim == 1:
        raise ValueError(
            "piecewise_constant: boundaries and values must be sequences, got shapes "
            f"{boundaries.shape} and {values.shape}"
        )
    if values.size != boundaries.size + 1:
        raise ValueError(
            "piecewise_constant: there must be one value more than boundaries, got "
            f"{values.size} and {boundaries.size}"
        )
    return lambda i: values[pnp.sum(i > boundaries)]


def make_schedule(scalar_or_schedule: Schedule | ArrayLike) -> Schedule:
    """The schedule itself, or the constant schedule of a number.

    Raises:
      TypeError: if the argument is neither a function nor a number.
    """
    if callable(scalar_or_schedule):
        schedule: Schedule = scalar_or_schedule
        return schedule
    try:
        shape = typeof(scalar_or_schedule).shape
    except TypeError:
        shape = None
    if shape != ():
        raise TypeError(
            f"a step size must be a number or a function of the step, got {scalar_or_schedule!r}"
        )
    return constant(scalar_or_schedule)


# Gradients


def l2_norm(tree: PyTree) -> Any:
    """The Euclidean norm of all elements of a pytree.

    >>> float(l2_norm([3.0, 4.0]))
    5.0
    """
    return pnp.sqrt(sum(pnp.vdot(x, x) for x in _leaves(tree)))


def _leaves(x: Any) -> list[Any]:
    return tree.leaves(x)


def clip_grads(grad_tree: PyTree, max_norm: ArrayLike) -> Any:
    """Gradients scaled down so that their :func:`l2_norm` is at most ``max_norm``."""
    norm = l2_norm(grad_tree)
    return tree.map(lambda g: pnp.where(norm < max_norm, g, g * (max_norm / norm)), grad_tree)


# Conversion of states


class JoinPoint:
    """Marker of the state of one parameter in the pytree of a whole state."""

    def __init__(self, subtree: Any) -> None:
        self.subtree: Any = subtree

    def __iter__(self) -> Any:
        yield self.subtree


def unpack_optimizer_state(opt_state: OptimizerState) -> Any:
    """The state as a pytree with the structure of the parameters and :class:`JoinPoint` leaves.

    It contains no other types of this library, and can be serialized.
    """
    return tree.unflatten(opt_state.tree_def, [JoinPoint(s) for s in _states(opt_state)])


def pack_optimizer_state(marked_pytree: PyTree) -> OptimizerState:
    """The inverse of :func:`unpack_optimizer_state`.

    Raises:
      TypeError: if a leaf is not a :class:`JoinPoint`.
    """
    leaves, whole = tree.flatten(marked_pytree)
    if not all(isinstance(x, JoinPoint) for x in leaves):
        raise TypeError(
            "pack_optimizer_state: all leaves must be JoinPoints, as returned by "
            "unpack_optimizer_state"
        )
    return _packed([x.subtree for x in leaves], whole)
