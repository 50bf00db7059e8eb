"""Pytrees compared with the real jax in this process, on sampled trees and every function."""

import collections
import dataclasses
import functools
import inspect
import pickle
import random

import jax
import pytest
from jax import tree_util as theirs

from primax_core import tree, tree_util
from primax_core._base.tree_prefix import flatten_axes

# jaxlib 0.10 gives every field of a named tuple the first name; Primax's names are correct.
NAMED_TUPLE_KEYS_ARE_WRONG = jax.__version_info__ < (0, 11)

Point = collections.namedtuple("Point", "x y")


class Plain:
    def __init__(self, a, b):
        self.a, self.b = a, b

    def __eq__(self, other):
        return type(other) is Plain and (self.a, self.b) == (other.a, other.b)


class Keyed(Plain):
    def __eq__(self, other):
        return type(other) is Keyed and (self.a, self.b) == (other.a, other.b)


@dataclasses.dataclass
class Record:
    data: object
    more: object
    name: str = dataclasses.field(default="n", metadata={"static": True})


@dataclasses.dataclass(frozen=True)
class Static:
    value: int


for module in (tree_util, theirs):
    key = module.GetAttrKey
    module.register_pytree_node(Plain, lambda p: ((p.a,), p.b), lambda b, a: Plain(*a, b))
    module.register_pytree_with_keys(
        Keyed,
        lambda p, key=key: (((key("a"), p.a), (key("b"), p.b)), None),
        lambda _, ab: Keyed(*ab),
    )
    module.register_dataclass(Record)
    module.register_static(Static)


def sample(choose, depth=3):
    """A random tree."""
    kinds = ["leaf", "none", "static"] if depth == 0 else [
        "leaf", "leaf", "none", "list", "tuple", "dict", "ordered", "default", "named", "plain",
        "keyed", "record", "static", "set",
    ]  # fmt: skip
    kind = choose.choice(kinds)
    make = functools.partial(sample, choose, depth - 1)
    keys = choose.sample("pqrst", choose.randint(0, 3))
    several = [make() for _ in keys if depth]
    match kind:
        case "leaf":
            return choose.randint(0, 99)
        case "none":
            return None
        case "list":
            return several
        case "tuple":
            return tuple(several)
        case "dict":
            return dict(zip(keys, several, strict=True))
        case "ordered":
            return collections.OrderedDict(zip(keys, several, strict=True))
        case "default":
            return collections.defaultdict(int, zip(keys, several, strict=True))
        case "named":
            return Point(make(), make())
        case "plain":
            return Plain(make(), choose.randint(0, 2))
        case "keyed":
            return Keyed(make(), make())
        case "record":
            return Record(make(), make(), choose.choice("ab"))
        case "static":
            return Static(choose.randint(0, 2))
        case "set":
            return frozenset({1})


TREES = [sample(random.Random(seed)) for seed in range(400)]


def outcome(fun, *args, **kwargs):
    """The result of a call, or the class of its exception."""
    try:
        return fun(*args, **kwargs)
    except Exception as error:
        return type(error).__name__


def same(name, *args, **kwargs):
    expected = outcome(getattr(theirs, name), *args, **kwargs)
    got = outcome(getattr(tree_util, name), *args, **kwargs)
    assert got == expected, (name, args, kwargs)


@pytest.mark.parametrize("is_leaf", [None, lambda x: x is None, lambda x: isinstance(x, tuple)])
def test_sampled_trees(is_leaf):
    for t in TREES:
        leaves, treedef = tree_util.tree_flatten(t, is_leaf)
        expected_leaves, expected_def = theirs.tree_flatten(t, is_leaf)
        assert leaves == expected_leaves
        assert str(treedef) == str(expected_def)
        assert treedef.num_leaves == expected_def.num_leaves
        assert tree_util.tree_unflatten(treedef, leaves) == t
        same("tree_leaves_with_path", t, is_leaf)
        same("tree_map", lambda x: (x,), t, is_leaf=is_leaf)
        same("tree_map_with_path", lambda p, x: (tree_util.keystr(p), x), t, is_leaf=is_leaf)
        same("tree_all", t, is_leaf=is_leaf)
        same("tree_reduce", lambda a, b: (a, b), t, is_leaf=is_leaf)
        same("tree_reduce", lambda a, b: (a, b), t, 0, is_leaf=is_leaf)
        same("tree_reduce_associative", lambda a, b: (a, b), t, identity=0, is_leaf=is_leaf)
        assert pickle.loads(pickle.dumps(treedef)) == treedef


def normal(one_level):
    """Normalize the container of the children, which is unspecified."""
    return one_level if isinstance(one_level, str) else (list(one_level[0]), one_level[1])


def test_one_level():
    for t in TREES:
        same("is_tree_node", type(t))
        one = outcome(tree_util.flatten_one_level, t)
        assert normal(one) == normal(outcome(theirs.flatten_one_level, t))
        if not (NAMED_TUPLE_KEYS_ARE_WRONG and isinstance(t, Point)):
            ours = outcome(tree_util.flatten_one_level_with_keys, t)
            expected = outcome(theirs.flatten_one_level_with_keys, t)
            assert str(normal(ours)) == str(normal(expected))
        same("all_leaves", [t, 1])


def prefix_outcome(fun, *args, **kwargs):
    try:
        return fun(*args, **kwargs)
    except ValueError as error:
        kind, path = str(error).split("\n")[:2]
        return kind, path


def test_prefixes():
    choose = random.Random(1)
    agreed = collections.Counter()
    for full in TREES:
        for _ in range(5):
            prefix = shortened(full, choose)
            for name in ("tree_broadcast", "tree_map"):
                args = (lambda a, b: (a, b),) if name == "tree_map" else ()
                expected = prefix_outcome(getattr(theirs, name), *args, prefix, full)
                got = prefix_outcome(getattr(tree_util, name), *args, prefix, full)
                if NAMED_TUPLE_KEYS_ARE_WRONG and "structure error" in str(expected):
                    got, expected = got[0], expected[0]
                assert got == expected, (prefix, full)
                agreed["structure error" in str(got)] += 1
    assert min(agreed[True], agreed[False]) > 50


def shortened(t, choose):
    """Replace some nodes of a tree by leaves or other nodes."""
    if choose.random() < 0.2:
        return choose.choice([0, 0, 0, 0, None, (1,), [2], {"p": 3}])
    level = theirs.default_registry.flatten_one_level(t)
    if level is None or t is None:
        return t
    children = [shortened(child, choose) for child in level[0]]
    one_level = theirs.tree_structure(t, is_leaf=lambda x: x is not t)
    return one_level.unflatten(children)


def test_transpose():
    for outer in TREES[:60]:
        for inner in TREES[:20]:
            outer_def, inner_def = theirs.tree_structure(outer), theirs.tree_structure(inner)
            if not outer_def.num_leaves:
                continue
            t = outer_def.unflatten([inner] * outer_def.num_leaves)
            expected = theirs.tree_transpose(outer_def, inner_def, t)
            for inner_tree in (tree_util.tree_structure(inner), None):
                assert (
                    tree_util.tree_transpose(tree_util.tree_structure(outer), inner_tree, t)
                    == expected
                )


def test_flatten_axes_accepts_what_vmap_accepts():
    choose = random.Random(2)
    accepted = 0
    for full in TREES:
        axes = shortened(full, choose)
        marked = jax.tree.map(
            lambda x: "none" if x is None else x, axes, is_leaf=lambda x: x is None
        )
        expected = outcome(jax.tree.broadcast, marked, full)
        got = outcome(flatten_axes, "in_axes", tree_util.tree_structure(full), axes)
        if expected == "ValueError":
            assert got == "ValueError"
        else:
            accepted += 1
            assert ["none" if x is None else x for x in got] == jax.tree.leaves(expected)
    assert accepted > 50


def test_dataclass_registration_errors():
    for args in (
        (["data"], ["name"]), (["data", "more", "z"], ["name"]), (["data"], None), (None, ["name"]),
        (["data", "name", "more"], ["name"]), (["data", "more"], ["name"]),
    ):  # fmt: skip
        same("register_dataclass", Record, *args)
    for other in (int, 3):
        same("register_dataclass", other)


def test_partial():
    def f(*args, **kwargs):
        return args, kwargs

    ours, reference = tree_util.Partial(f, 1, b=2), theirs.Partial(f, 1, b=2)
    assert ours(3, c=4) == reference(3, c=4)
    assert str(tree_util.tree_structure(ours)) == str(theirs.tree_structure(reference))
    assert str(tree_util.tree_leaves_with_path(ours)) == str(
        theirs.tree_leaves_with_path(reference)
    )
    again = tree_util.Partial(tree_util.Partial(f, 1), 5)
    assert again.args == theirs.Partial(theirs.Partial(f, 1), 5).args == (5,)


@pytest.mark.parametrize("module", ["tree", "tree_util"])
def test_names_and_parameters(module):
    ours = {"tree": tree, "tree_util": tree_util}[module]
    reference = getattr(jax, module)
    for name in dir(reference):
        if name.startswith("_") or inspect.ismodule(getattr(reference, name)):
            continue
        if name in ("build_tree", "register_dataclass_jax_array"):
            continue
        assert hasattr(ours, name), name
        if inspect.isfunction(getattr(reference, name)):
            expected = list(inspect.signature(getattr(reference, name)).parameters)
            assert list(inspect.signature(getattr(ours, name)).parameters) == expected, name
