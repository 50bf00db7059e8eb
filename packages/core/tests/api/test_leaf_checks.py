"""Classes of pytrees that check the types of their leaves when they are unflattened."""

from __future__ import annotations

import numpy as np
import pytest

import primax_core as px
from primax_core import Array, lax, tree_util
from primax_core._base.operand_trees import numbered


@tree_util.register_pytree_node_class
class Checked:
    """A node that refuses leaves other than arrays, as jaxtyping's checks do."""

    def __init__(self, a):
        if not isinstance(a, Array):
            raise TypeError(f"expected an array, got {a!r}")
        self.a = a

    def tree_flatten(self):
        return (self.a,), None

    @classmethod
    def tree_unflatten(cls, metadata, children):
        return cls(*children)


X = px.device_put(np.arange(3, dtype=np.float32))


def total(checked):
    return lax.reduce_sum(checked.a, (0,))


def doubled(checked):
    return Checked(checked.a * 2)


CALLS = {
    "jit": lambda x: px.jit(doubled)(x),
    "donated": lambda x: px.jit(doubled, donate_argnums=0)(Checked(x.a + 0)),
    "lower": lambda x: px.jit(doubled).lower(x).compile()(x),
    "cond": lambda x: lax.cond(total(x) > 0, doubled, lambda y: y, x),
    "scan": lambda x: lax.scan(lambda c, y: (doubled(c), c), x, None, length=1)[0],
    "while_loop": lambda x: lax.while_loop(lambda c: total(c) < 4, doubled, x),
    "fori_loop": lambda x: lax.fori_loop(0, 1, lambda i, c: doubled(c), x),
    "checkpoint": lambda x: px.checkpoint(doubled)(x),
    "grad": lambda x: px.grad(lambda y: total(y) * 2)(x),
    "vmap": lambda x: px.vmap(doubled)(x),
}


@pytest.mark.parametrize("name", CALLS)
def test_leaves_are_checked(name):
    out = CALLS[name](Checked(X))
    assert type(out) is Checked
    assert out.a.tolist() == ([2, 2, 2] if name == "grad" else [0, 2, 4])


def test_errors_name_the_leaves():
    with pytest.raises(TypeError, match=r"at path \['b'\]\[0\] has type float32\[3\]"):
        lax.cond(
            True, lambda x: {"b": Checked(x)}, lambda x: {"b": Checked(lax.slice(x, (0,), (2,)))}, X
        )
    with pytest.raises(TypeError, match=r"returned a value of type .* at output component\['b'\]"):
        px.jit(lambda x: {"a": Checked(x), "b": "text"})(X)


def test_numbers_of_leaves():
    structure = tree_util.tree_structure({"a": Checked(X), "b": (X, [X, Checked(X)], None)})
    tree = numbered(structure)
    assert tree == {"a": (0,), "b": (1, [2, (3,)], None)}
    assert tree_util.tree_leaves(tree) == [0, 1, 2, 3]
