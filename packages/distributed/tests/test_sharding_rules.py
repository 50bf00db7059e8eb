"""Sharding rules of `custom_partitioning`: texts, classes, and messages about wrong rules."""

from __future__ import annotations

import copy
import pickle
import re

import pytest

from primax_distributed._sharding_rule import axis_rule, parse_rule, with_leading
from primax_distributed.custom_partitioning import (
    BATCHING,
    ArrayMapping,
    CompoundFactor,
    SdyShardingRule,
)


def test_rule_of_a_product_of_matrices():
    rule = axis_rule(parse_rule("i j, j k -> i k"), [(8, 4), (4, 16)], [(8, 16)])
    assert rule.sizes == (8, 4, 16)
    assert rule.operands == (((0,), (1,)), ((1,), (2,)))
    assert rule.results == (((0,), (2,)),)
    assert not (rule.reduction or rule.whole or rule.permutation)


def test_sets_of_factors():
    rule = parse_rule(
        "i j k, l -> i", reduction_factors=("j",), need_replication_factors=("k",),
        permutation_factors=["l"],
    )  # fmt: skip
    whole = axis_rule(rule, [(2, 3, 4), (5,)], [(2,)])
    assert (whole.reduction, whole.whole, whole.permutation) == ({1}, {2}, {3})
    assert "reduction_factors=('j',)" in repr(rule)


def test_products_of_factors():
    rule = axis_rule(parse_rule("(i j) k -> i (j k)", j=4), [(8, 3)], [(2, 12)])
    sizes = {n: rule.sizes[n] for group in rule.operands[0] for n in group}
    (first, second), (third,) = rule.operands[0]
    assert [sizes[first], sizes[second], sizes[third]] == [2, 4, 3]
    assert rule.results == (((first,), (second, third)),)


@pytest.mark.parametrize("text", ["... i, i j -> ... j", "...i,i j->...j", "… i, i j -> … j"])
def test_leading_axes(text):
    rule = axis_rule(parse_rule(text), [(5, 6, 3), (3, 4)], [(5, 6, 4)])
    assert [rule.sizes[n] for (n,) in rule.operands[0]] == [5, 6, 3]
    assert rule.results[0][:2] == rule.operands[0][:2]
    assert axis_rule(parse_rule(text), [(3,), (3, 4)], [(4,)]).sizes == (3, 4)


def test_two_groups_of_leading_axes():
    rule = axis_rule(parse_rule("... i, ...1 i -> i"), [(2, 3), (5, 7, 3)], [(3,)])
    assert sorted(rule.sizes) == [2, 3, 5, 7]


def test_an_operation_may_change_a_size():
    assert axis_rule(parse_rule("i, i -> i"), [(4,), (4,)], [(8,)]).sizes == (4,)


def test_scalars_have_no_factors():
    assert axis_rule(parse_rule("i, -> "), [(4,), ()], [()]).operands == (((0,),), ())


def test_mapped_axes_are_in_front():
    rule = axis_rule(parse_rule("i, i -> i"), [(4,), (4,)], [(4,)])
    mapped = with_leading(rule, [2, 3], [[0], [0, 1]], 1)
    assert mapped.sizes == (4, 2, 3)
    assert mapped.operands == (((1,), (0,)), ((1,), (2,), (0,)))
    assert mapped.results == (((1,), (2,), (0,)),)


def test_classes_equal_their_text():
    operand = ArrayMapping(BATCHING + "0", CompoundFactor("i", "j"))
    rule = SdyShardingRule((operand,), ((BATCHING + "0", "i", "j"),))
    assert repr(rule) == repr(parse_rule("... (i j) -> ... i j"))
    assert axis_rule(rule, [(5, 6)], [(5, 2, 3)]).sizes == (5, 2, 3)
    for value in (ArrayMapping("i", CompoundFactor("j", "k")), CompoundFactor("i", "j")):
        for other in (pickle.loads(pickle.dumps(value)), copy.deepcopy(value)):
            assert other == value and type(other) is type(value)


WRONG = {
    "i j": "contains '->' 0 times",
    "i -> j -> k": "contains '->' 2 times",
    "3 -> 3": "'3' is no name of a factor",
    "_i -> _i": "'_i' is no name of a factor",
    "i- -> i": "'-' is no name of a factor",
    "i ... -> i": "'...' is not the first axis in 'i ...'",
    "(... i) -> i": "'...' is not the first axis in '(... i)'",
    "((i j) k) -> i": "parentheses are nested",
    "(i j -> i j": "'(' without ')'",
    "i) -> i": "')' without '('",
    "(i) -> i": "at least two factors",
    "(i j) -> i": "the factor 'j' occurs only in products of factors: pass its size, j=...",
}


@pytest.mark.parametrize("text", WRONG)
def test_wrong_texts(text):
    with pytest.raises(ValueError, match=re.escape(WRONG[text])):
        parse_rule(text)


def test_wrong_types():
    with pytest.raises(TypeError, match="a string or SdyShardingRule, got 5 of type int"):
        parse_rule(5)
    with pytest.raises(ValueError, match="got 3 of type int"):
        ArrayMapping(3)
    with pytest.raises(ValueError, match="must be the first entry"):
        ArrayMapping("i", BATCHING)
    with pytest.raises(TypeError, match=r"operand_mappings .* for each operand, got 'i'"):
        SdyShardingRule("i", "i")
    with pytest.raises(TypeError, match=r"contains 'i': write ArrayMapping"):
        SdyShardingRule(("i",), (("i",),))


@pytest.mark.parametrize(
    "options, message",
    [
        ({"i": 4}, "the factor 'i' is a whole axis, which has its own size"),
        ({"z": 4}, "the size of the factor 'z' is given, but the rule does not contain it"),
        ({"reduction_factors": ("z",)}, "reduction_factors contains 'z', but the rule"),
        (
            {"reduction_factors": ("j",), "permutation_factors": ("j",)},
            "the factor 'j' is in reduction_factors and in permutation_factors",
        ),
        ({"reduction_factors": ("i",)}, "the factor 'i' is in reduction_factors and in a result"),
    ],
)
def test_wrong_options(options, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        parse_rule("i j -> i", **options)


def test_a_size_must_be_positive():
    with pytest.raises(ValueError, match="the size of the factor 'i' must be positive, got 0"):
        parse_rule("(i j) -> j", i=0)


@pytest.mark.parametrize(
    "text, ins, outs, message",
    [
        ("i -> i", [(4,), (4,)], [(4,)], "the sharding rule has 1 operands, but the function has"),
        ("i -> i, i", [(4,)], [(4,)], "the sharding rule has 2 results, but the function has 1"),
        ("i -> i", [(4, 2)], [(4,)], "operand 0 has the shape (4, 2), but the sharding rule has 1"),
        ("... i -> i", [()], [(4,)], "has at least 1 axes for it"),
        ("... , ... -> ...", [(4,), (3,)], [(4,)], "stands for have the sizes 4 and 3"),
        ("i i -> i", [(4, 4)], [(4,)], "one factor twice for operand 0: ('i', 'i')"),
        ("(i j) , i, j -> i", [(8,), (2,), (3,)], [(2,)], "an axis of size 8, but the product"),
    ],
)
def test_rules_that_do_not_fit(text, ins, outs, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        axis_rule(parse_rule(text), ins, outs)
