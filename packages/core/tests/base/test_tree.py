"""Pytrees: flattening, mapping, key paths, registration, prefixes and error messages."""

import collections
import dataclasses
import functools
import pickle
import subprocess
import sys

import pytest
from hypothesis import given, strategies as st

from primax_core import tree, tree_util
from primax_core._base import _pytree_native as native
from primax_core._base.tree_prefix import broadcast_prefix, flatten_axes, prefix_errors

Point = collections.namedtuple("Point", "x y")


@tree_util.register_pytree_with_keys_class
class Keyed:
    def __init__(self, a):
        self.a = a

    def tree_flatten_with_keys(self):
        return ((tree_util.GetAttrKey("a"), self.a),), None

    @classmethod
    def tree_unflatten(cls, metadata, children):
        return cls(*children)


@tree_util.register_pytree_node_class
class Plain:
    def __init__(self, a, b):
        self.a, self.b = a, b

    def tree_flatten(self):
        return (self.a,), self.b

    @classmethod
    def tree_unflatten(cls, metadata, children):
        return cls(*children, metadata)

    def __eq__(self, other):
        return (self.a, self.b) == (other.a, other.b)


leaves = st.one_of(st.integers(), st.text(max_size=2), st.booleans(), st.just(frozenset({1})))
trees = st.recursive(
    st.one_of(leaves, st.none()),
    lambda children: st.one_of(
        st.lists(children, max_size=3),
        st.lists(children, max_size=3).map(tuple),
        st.dictionaries(st.text(max_size=2), children, max_size=3),
        st.dictionaries(st.text(max_size=2), children, max_size=3).map(collections.OrderedDict),
        st.dictionaries(st.text(max_size=2), children, max_size=3).map(
            lambda d: collections.defaultdict(list, d)
        ),
        st.builds(Point, children, children),
        st.builds(Plain, children, st.integers(0, 2)),
    ),
    max_leaves=8,
)


@given(trees)
def test_unflatten_is_the_inverse_of_flatten(t):
    values, treedef = tree_util.tree_flatten(t)
    again = tree_util.tree_unflatten(treedef, values)
    assert again == t
    assert type(again) is type(t)
    assert tree_util.tree_structure(again) == treedef
    assert treedef.num_leaves == len(values) == len(tree_util.tree_leaves(t))


@given(trees)
def test_paths_resolve_to_the_leaves(t):
    for path, leaf in tree_util.tree_leaves_with_path(t):
        node = t
        for key in path:
            node = dict(tree_util.flatten_one_level_with_keys(node)[0])[key]
        assert node is leaf or node == leaf


@given(trees)
def test_structures_pickle(t):
    treedef = tree_util.tree_structure(t)
    again = pickle.loads(pickle.dumps(treedef))
    assert again == treedef
    assert hash(again) == hash(treedef)


@given(trees)
def test_a_structure_is_a_prefix_of_itself(t):
    count = tree_util.tree_structure(t).num_leaves
    assert broadcast_prefix(t, t) == tree_util.tree_leaves(t)
    assert broadcast_prefix(0, t) == [0] * count
    assert prefix_errors(t, t) == []
    assert flatten_axes("axes", tree_util.tree_structure(t), None) == [None] * count


def test_native_flatten_is_the_public_one():
    assert native.tree_flatten([1, (2,)]) == tree_util.tree_flatten([1, (2,)])
    assert native.tree_unflatten(native.tree_structure([1, 2]), [3, 4]) == [3, 4]
    assert native.tree_leaves({"b": 1, "a": 2}) == [2, 1]
    both = native.treedef_tuple([native.tree_structure(1), native.tree_structure([1])])
    assert both == tree_util.tree_structure((1, [1]))


def test_named_tuples_and_subclasses():
    class Sub(dict):
        pass

    assert tree_util.tree_leaves(Sub(a=1)) == [{"a": 1}]
    keys = [str(key) for key, _ in tree_util.flatten_one_level_with_keys(Point(1, 2))[0]]
    assert keys == [".x", ".y"]


def test_defaultdict_keeps_its_factory_and_sorts_keys():
    d = collections.defaultdict(list, b=1, a=2)
    assert tree_util.tree_leaves(d) == [2, 1]
    assert tree_util.tree_map(str, d).default_factory is list


def test_ordered_dict_keeps_its_order():
    d = collections.OrderedDict(b=1, a=2)
    assert list(tree_util.tree_map(str, d)) == ["b", "a"]


@pytest.mark.parametrize("kind", [dict, functools.partial(collections.defaultdict, int)])
def test_unsortable_keys(kind):
    with pytest.raises(ValueError, match="sort"):
        tree_util.tree_leaves(kind({1: 2, "a": 3}))


def test_keystr():
    keys = (
        tree_util.SequenceKey(1),
        tree_util.DictKey("a"),
        tree_util.GetAttrKey("x"),
        tree_util.FlattenedIndexKey(2),
        "own",
    )
    assert tree_util.keystr(keys) == "[1]['a'].x[<flat index 2>]own"
    assert tree_util.keystr(keys, simple=True, separator="/") == "1/a/x/2/own"
    assert tree_util.keystr(()) == ""


def test_keys_match_by_position():
    match tree_util.SequenceKey(3):
        case tree_util.SequenceKey(idx):
            assert idx == 3


def test_is_leaf_with_path():
    stop = tree_util.SequenceKey(1)
    pairs, _ = tree_util.tree_flatten_with_path(
        [1, [2]], is_leaf=lambda path, _: path[-1:] == (stop,), is_leaf_takes_path=True
    )
    assert [leaf for _, leaf in pairs] == [1, [2]]


def test_tree_names_are_those_of_tree_util():
    for name in dir(tree):
        if name.islower() and not name.startswith("_") and name != "static":
            assert getattr(tree, name) is getattr(tree_util, f"tree_{name}")


# Mapping


def test_map_takes_subtrees_of_the_other_trees():
    assert tree.map(lambda a, b: (a, b), [1, 2], [3, (4, 5)]) == [(1, 3), (2, (4, 5))]


@pytest.mark.parametrize(
    ("prefix", "full", "message"),
    [
        (
            [1, 2],
            [3, 4, 5],
            """pytree structure error: different lengths of list at key path
    tree_map tree
There the prefix tree has a list of length 2 and the full tree has a list of length 3.""",
        ),
        (
            [1, (1, 2)],
            [3, 5],
            """pytree structure error: different types at key path
    tree_map tree[1]
There the prefix tree has a node of type
    <class 'tuple'>
and the full tree has a leaf of type
    <class 'int'>.""",
        ),
        (
            {"p": {"a": 2}},
            {"p": {"b": 3}},
            """pytree structure error: different pytree metadata at key path
    tree_map tree['p']
There both trees have a node of type
    <class 'dict'>
but in the prefix tree its metadata is
    ['a']
and in the full tree
    ['b']
Keys in the prefix tree only: 'a'.
Keys in the full tree only: 'b'.""",
        ),
        (
            Point(1, {"a": 2}),
            Point(1, {"a": 2, "b": 3}),
            """pytree structure error: different numbers of pytree children at key path
    tree_map tree.y
There both trees have a node of type
    <class 'dict'>
but in the prefix tree it has 1 child, in the full tree 2 children.
Keys in the full tree only: 'b'.""",
        ),
    ],
)
def test_map_of_mismatched_trees(prefix, full, message):
    with pytest.raises(ValueError) as info:
        tree.map(lambda a, b: a, prefix, full)
    assert str(info.value) == message
    with pytest.raises(ValueError, match="structure error"):
        tree.map_with_path(lambda p, a, b: a, prefix, full)


def test_none_in_the_first_tree():
    with pytest.raises(ValueError, match="None is a tree without leaves"):
        tree.map(lambda a, b: a, [None], [1])
    assert tree.map(lambda a, b: b, [None], [1], is_leaf=lambda x: x is None) == [1]
    assert tree.map(lambda a, b: b, [1], [None]) == [None]


def test_metadata_of_custom_nodes():
    with pytest.raises(
        ValueError, match="different pytree metadata at key path\n    tree_map tree\n"
    ):
        tree.map(lambda a, b: a, Plain(1, "p"), Plain(1, "q"))


def test_unflatten_checks_the_number_of_leaves():
    treedef = tree.structure([1, 2])
    with pytest.raises(ValueError, match="Too few leaves for PyTreeDef; expected 2, got 1"):
        tree.unflatten(treedef, [1])
    with pytest.raises(ValueError, match="Too many leaves for PyTreeDef; expected 2"):
        tree.unflatten(treedef, [1, 2, 3])


# Reducing, transposing


def test_reduce():
    assert tree.reduce(lambda a, b: a + b, [1, (2, 3)], 10) == 16
    with pytest.raises(TypeError, match="empty"):
        tree.reduce(lambda a, b: a + b, [])
    assert tree.reduce(lambda a, b: a + b, [], None) is None


def test_reduce_associative():
    assert tree.reduce_associative(lambda a, b: (a, b), [1, 2, 3, 4, 5]) == ((1, 2), (3, (4, 5)))
    assert tree.reduce_associative(lambda a, b: a + b, [], identity=7) == 7
    with pytest.raises(TypeError, match="identity"):
        tree.reduce_associative(lambda a, b: a + b, [])


def test_transpose():
    outer, inner = tree.structure({"p": 0, "q": 0}), tree.structure((0, [0]))
    t = {"p": (1, [2]), "q": (3, [4])}
    expected = ({"p": 1, "q": 3}, [{"p": 2, "q": 4}])
    assert tree.transpose(outer, inner, t) == expected
    assert tree.transpose(outer, None, t) == expected
    assert tree.transpose(tree.structure([]), inner, []) == ([], [[]])
    with pytest.raises(TypeError, match="Mismatch"):
        tree.transpose(outer, inner, {"p": (1, [2]), "q": (3, [])})
    with pytest.raises(TypeError, match="required"):
        tree.transpose(tree.structure([]), None, [])


def test_all_leaves():
    assert tree_util.all_leaves([1, [2]], is_leaf=lambda x: isinstance(x, list))
    assert not tree_util.all_leaves([1, [2]])
    assert not tree_util.all_leaves([Point(1, 2)], is_leaf=lambda x: False)


def test_flatten_one_level_of_a_leaf():
    for fun in (tree_util.flatten_one_level, tree_util.flatten_one_level_with_keys):
        with pytest.raises(ValueError, match="can't tree-flatten type: <class 'int'>"):
            fun(3)


# Registration


def test_registering_twice():
    with pytest.raises(ValueError, match="Duplicate custom PyTreeDef type registration for"):
        tree_util.register_pytree_node_class(Plain)
    with pytest.raises(ValueError, match="Duplicate"):
        tree_util.register_pytree_node(list, lambda x: (x, None), lambda _, x: x)


def test_registering_a_value_that_is_not_a_class():
    with pytest.raises(TypeError, match="takes a class, got 5"):
        tree_util.register_pytree_node(5, None, None)


def test_flatten_without_a_pair():
    class Bad:
        pass

    tree_util.register_pytree_node(Bad, lambda x: 5, lambda _, x: x)
    with pytest.raises(ValueError, match=r"\(children, aux_data\) tuple, got 5"):
        tree_util.tree_leaves(Bad())


def test_keys_of_registered_classes():
    assert str(tree_util.tree_leaves_with_path(Keyed(3))[0][0][0]) == ".a"
    assert tree_util.tree_leaves(Keyed(3)) == [3]
    assert str(tree_util.tree_leaves_with_path(Plain(3, 0))[0][0][0]) == "[<flat index 0>]"


def test_dataclass():
    @dataclasses.dataclass
    class Layer:
        weight: object
        name: str = tree.static(default="n")
        cache: object = None

    assert tree_util.register_dataclass(Layer, drop_fields=["cache"]) is Layer
    layer = Layer(1, "out", cache=object())
    doubled = tree.map(lambda x: 2 * x, layer)
    assert doubled == Layer(2, "out", None)
    assert str(tree.leaves_with_path(layer)[0][0][0]) == ".weight"
    assert tree.structure(layer) != tree.structure(Layer(1, "in"))


def test_dataclass_with_lists_and_ordinary_class():
    class Ordinary:
        def __init__(self, a, b):
            self.a, self.b = a, b

    tree_util.register_dataclass(Ordinary, ["a"], ["b"])
    again = tree.map(lambda x: x + 1, Ordinary(1, "b"))
    assert (again.a, again.b) == (2, "b")


@pytest.mark.parametrize(
    ("lists", "error", "text"),
    [
        ((["a"], None), TypeError, "must both be specified"),
        ((["a"], []), ValueError, "Missing fields: {'b'}"),
        ((["a", "b", "c"], []), ValueError, "Unexpected fields: {'c'}"),
        ((["a", "b"], ["b"]), ValueError, "Overlapping fields: {'b'}"),
    ],
)
def test_dataclass_field_errors(lists, error, text):
    @dataclasses.dataclass
    class Two:
        a: int
        b: int

    with pytest.raises(error, match=text):
        tree_util.register_dataclass(Two, *lists)


def test_static_class():
    @tree_util.register_static
    @dataclasses.dataclass(frozen=True)
    class Mode:
        name: str

    assert tree.leaves([Mode("a"), 1]) == [1]
    assert tree.structure(Mode("a")) == tree.structure(Mode("a"))
    assert tree.structure(Mode("a")) != tree.structure(Mode("b"))


def test_partial():
    def f(*args, **kwargs):
        return args, kwargs

    bound = tree_util.Partial(f, 1, b=2)
    assert tree.map(lambda x: 10 * x, bound)(3, c=4) == ((10, 3), {"b": 20, "c": 4})
    outer = tree_util.Partial(bound, 5)
    assert tree.leaves(outer) == [5]
    assert outer(6) == ((1, 5, 6), {"b": 2})
    assert tree.structure(outer) == tree.structure(tree_util.Partial(bound, 0))
    assert tree.map(lambda x: x, tree.map(lambda x: x, outer)).func is outer.func
    assert tree.leaves(tree_util.Partial(functools.partial(f, 1), 2)) == [2]


# Prefixes


@pytest.mark.parametrize(
    ("axes", "value", "expected"),
    [
        (0, [1, 2], [0, 0]),
        (None, [1, {"a": 2}], [None, None]),
        ([0, None], [1, (2, 3)], [0, None, None]),
        ((0, {"a": 1}), (1, {"a": [2, 3]}), [0, 1, 1]),
        ((0, None), (1, None), [0]),
        ((0, 1), ([], 2), [1]),
        ([0, None], [None, 3], [None]),
        (Point(0, 1), Point(5, (6, 7)), [0, 1, 1]),
        (Plain(0, "m"), Plain([1, 2], "m"), [0, 0]),
    ],
)
def test_flatten_axes(axes, value, expected):
    assert flatten_axes("vmap in_axes", tree.structure(value), axes) == expected


@pytest.mark.parametrize(
    ("axes", "value", "path"),
    [
        (
            (0, {"a": 0}),
            (1, {"a": 1, "b": 2}),
            "numbers of pytree children at key path\n    out_axes[1]",
        ),
        ((0, (0,)), (1, [1]), "types at key path\n    out_axes[1]"),
        ([0, [0]], [1, [1, 2]], "lengths of list at key path\n    out_axes[1]"),
        ((0, 1), 5, "types at key path\n    out_axes\n"),
        (Plain(0, "m"), Plain(1, "n"), "metadata at key path\n    out_axes\n"),
        ([[0], [0, [0]]], [[1], [2, 3]], "types at key path\n    out_axes[1][1]\n"),
    ],
)
def test_mismatched_axes(axes, value, path):
    with pytest.raises(ValueError) as info:
        flatten_axes("out_axes", tree.structure(value), axes)
    text = str(info.value)
    assert text.startswith(
        "out_axes specification must be a tree prefix of the corresponding value;"
    )
    assert path in text


def test_all_mismatches_are_reported():
    mismatches = prefix_errors([(1,), 2, [3]], [[1], 2, (3,)])
    assert [tree_util.keystr(mismatch.path) for mismatch in mismatches] == ["[0]", "[2]"]


def test_broadcast():
    assert tree.broadcast([0, 1], [{"a": 5, "b": 6}, 7]) == [{"a": 0, "b": 0}, 1]
    with pytest.raises(ValueError, match="broadcast_prefix prefix_tree"):
        tree.broadcast([0], [1, 2])


def test_a_tree_that_contains_itself_raises():
    code = (
        "from primax_core import tree_util\n"
        "t = []; t.append(t)\n"
        "try:\n    tree_util.tree_leaves(t)\n"
        "except (RecursionError, SystemError):\n    print('raised')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                          env={"PYTHONPATH": ":".join(sys.path)})  # fmt: skip
    assert done.stdout.strip() == "raised", done.stderr


def test_treedef_tuple_refuses_other_values():
    message = r"element 1 is 3: convert it with tree_structure"
    with pytest.raises(TypeError, match=message):
        tree_util.treedef_tuple([tree_util.tree_structure(1), 3])
