"""Random bit generators of other packages: definition, registration, keys of several axes."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from test_numpy_random_keys import ROWS

import primax_numpy as pnp
from primax_core import (
    config,
    debug_key_reuse,
    default_prng_impl,
    jit,
    lax,
    make_jaxpr,
    typeof,
    vmap,
)
from primax_core.errors import KeyReuseError
from primax_core.extend import RuleResultError
from primax_numpy import random
from primax_numpy.random import _prng_checks, extend

U32 = np.uint32


def mixed(x: Any) -> Any:
    """The finalizer of MurmurHash3, a bijection of words."""
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        x = lax.mul(lax.bitwise_xor(x, lax.shift_right_logical(x, U32(shift))), U32(factor))
    return lax.bitwise_xor(x, lax.shift_right_logical(x, U32(16)))


def functions(key_shape: tuple[int, ...]) -> dict[str, Callable[..., Any]]:
    """The functions of a generator whose keys have a shape."""
    positions = np.arange(1, math.prod(key_shape) + 1, dtype=U32).reshape(key_shape)

    def hashed(key: Any, numbers: Any) -> Any:
        shape = (*numbers.shape, *key_shape)
        spread = lax.broadcast_in_dim(numbers, shape, tuple(range(numbers.ndim)))
        return mixed(lax.broadcast(key, numbers.shape) + mixed(spread + U32(0x9E3779B9)))

    def seed(seed: Any) -> Any:
        return mixed(lax.broadcast(lax.convert_element_type(seed, U32), key_shape) + positions)

    def split(key: Any, shape: tuple[int, ...]) -> Any:
        return hashed(key, lax.reshape(lax.iota(U32, math.prod(shape)), shape))

    def fold_in(key: Any, data: Any) -> Any:
        return hashed(mixed(key), data)

    def random_bits(key: Any, width: int, shape: tuple[int, ...]) -> Any:
        words = split(lax.bitwise_not(key), shape)
        axes = tuple(range(len(shape), len(shape) + len(key_shape)))
        out = mixed(lax.reduce_xor(words, axes))
        if width < 64:
            return lax.convert_element_type(out, np.dtype(f"uint{width}"))
        low, high = (lax.convert_element_type(v, np.dtype("uint64")) for v in (out, mixed(out)))
        return lax.bitwise_or(low, lax.shift_left(high, lax.full_like(high, 32)))

    return {"seed": seed, "split": split, "fold_in": fold_in, "random_bits": random_bits}


def define(name: str, key_shape: tuple[int, ...] = (2, 2), **changes: Any) -> Any:
    """An implementation, with some of its functions replaced."""
    parts = {**functions(key_shape), **changes}
    return extend.define_prng_impl(name=name, tag=name, key_shape=key_shape, **parts)


@pytest.fixture(autouse=True, scope="module")
def registered() -> Iterator[None]:
    """``square`` has keys of shape (2, 2)."""
    extend.register_prng_impl(define("square"))
    yield


# Definition and registration


@pytest.mark.parametrize("key_shape", [(1,), (1, 2, 3)])
def test_checks_of_a_good_implementation(key_shape: tuple[int, ...]) -> None:
    extend.check_prng_impl(define("good", key_shape))


def test_registered_names() -> None:
    assert extend.registered_prng_impls()[-1] == "square"
    key = random.key(0, impl="square")
    assert random.key_impl(key) == "square" and str(key.dtype) == "key<square>"
    assert key.dtype.itemsize == 16 and random.key_data(key).shape == (2, 2)
    assert random.key_dtype("square") == key.dtype == random.key(1, dtype="square").dtype
    with default_prng_impl("square"):
        assert random.key(0) == key
        raw = random.PRNGKey(0)
        assert raw.shape == (2, 2) and raw.dtype == U32
        np.testing.assert_array_equal(random.split(raw, 3), random.key_data(random.split(key, 3)))
        np.testing.assert_array_equal(random.normal(raw), random.normal(key))
        with pytest.raises(TypeError, match=r"words of shape \(2, 2\) on its last axes.*\[2\]"):
            random.normal(np.zeros(2, U32))


def test_unknown_names_list_the_registered_ones() -> None:
    with pytest.raises(ValueError, match=r"'dice'.*'threefry2x32'.*'square'"):
        random.key(0, impl="dice")
    with pytest.raises(ValueError, match=r"'threefry2x32'.*'square'.*got dice"):
        config.update("default_prng_impl", "dice")


def test_registering_twice() -> None:
    parts = functions((3,))

    def make(**changes: Any) -> Any:
        fields = {"name": "twice", "tag": "tw", "key_shape": (3,), **parts, **changes}
        return extend.define_prng_impl(**fields)

    first = extend.register_prng_impl(make())
    assert extend.register_prng_impl(make()) is first
    with pytest.raises(ValueError, match=r"the name 'twice'.*seed at .*extend.py:\d+; choose"):
        extend.register_prng_impl(make(seed=lambda s: s))
    with pytest.raises(ValueError, match="the tag 'tw' is registered already: 'twice'"):
        extend.register_prng_impl(make(name="other"))
    with pytest.raises(ValueError, match="the tag 'fry'"):
        extend.register_prng_impl(make(name="other", tag="fry"))
    with pytest.raises(TypeError, match="result of define_prng_impl, got 'twice'"):
        extend.register_prng_impl("twice")  # type: ignore[arg-type]
    assert "other" not in extend.registered_prng_impls()


@pytest.mark.parametrize(
    ("changes", "error", "text"),
    [
        ({"name": 3}, TypeError, "the name of a PRNG is a string, got 3"),
        ({"tag": ""}, ValueError, "the tag of a PRNG is empty"),
        ({"key_shape": 2}, TypeError, "tuple of integers, got 2"),
        ({"key_shape": (2.0,)}, TypeError, "tuple of integers"),
        ({"key_shape": ()}, ValueError, "at least one axis"),
        ({"key_shape": (0,)}, ValueError, "at least one axis"),
        ({"seed": None}, TypeError, "must be callable, got None"),
        ({"split": lambda key: key}, TypeError, r"called as \(key, shape\).*py:\d+ takes 1"),
    ],
)
def test_bad_definitions(changes: Any, error: type[Exception], text: str) -> None:
    fields = {"name": "bad", "tag": "bad", "key_shape": (2,), **functions((2,)), **changes}
    with pytest.raises(error, match=text):
        extend.define_prng_impl(**fields)


# Results of the functions


@pytest.mark.parametrize(
    ("part", "function", "use", "text"),
    [
        ("seed", lambda s: pnp.zeros(3, U32), lambda k: k(), r"of type u32\[3\].*is u32\[2,2\]"),
        ("seed", lambda s: None, lambda k: k(), r"returned None where the type is u32\[2,2\]"),
        ("seed", lambda s: pnp.zeros((2, 2)), lambda k: k(), r"of type f32\[2,2\]"),
        ("split", lambda k, shape: k, lambda k: random.split(k(), 3), r"is u32\[3,2,2\]; it must"),
        ("fold_in", lambda k, d: d, lambda k: random.fold_in(k(), 3), r"of type u32\[\].*u32\[2"),
        (
            "random_bits", lambda k, w, s: pnp.zeros(s, U32),
            lambda k: random.bits(k(), (3,), dtype="uint8"), r"of type u32\[3\].*is u8\[3\]",
        ),
    ],
)  # fmt: skip
@pytest.mark.parametrize("batched", [False, True])
def test_wrong_results_name_the_function(
    part: str, function: Any, use: Any, text: str, batched: bool
) -> None:
    impl = define("wrong", **{part: function})
    with pytest.raises(RuleResultError, match=text) as info:
        if batched:
            vmap(lambda s: use(lambda: random.key(s, impl=impl)))(np.arange(2))
        else:
            use(lambda: random.key(0, impl=impl))
    line = function.__code__.co_firstlineno
    assert str(info.value).startswith(f"the {part} rule of wrong ({__file__}:{line})")
    assert info.traceback[-1].frame.code.raw.co_filename == __file__


def test_checks_report_each_problem() -> None:
    parts = functions((2, 2))
    calls = []

    def split(key: Any, shape: tuple[int, ...]) -> Any:
        return lax.broadcast(key, shape)

    def random_bits(key: Any, width: int, shape: tuple[int, ...]) -> Any:
        calls.append(1)
        return parts["random_bits"](key + U32(len(calls)), width, shape)

    impl = define("weak", split=split, fold_in=lambda k, d: k, random_bits=random_bits)
    with pytest.raises(AssertionError) as info:
        extend.check_prng_impl(impl)
    text = str(info.value)
    assert text.startswith("the PRNG weak failed\n")
    assert "distinct children: split into 1000 keys gives 999 of them twice" in text
    assert "distinct data: fold_in of 1002 numbers gives 1001 keys twice" in text
    assert "determinism: random_bits gives different results for equal arguments" in text
    assert "distinct seeds" not in text
    with pytest.raises(ValueError, match="no check is named 'speed'; the checks are types,"):
        extend.check_prng_impl(impl, without=["speed"])


def test_checks_of_the_platform_generator() -> None:
    """A batch draws from its first key, which is the only problem."""
    rbg: Any = random.key_dtype("rbg").impl
    with pytest.raises(AssertionError, match="batching: random_bits under vmap differs") as info:
        extend.check_prng_impl(rbg)
    assert all(line.startswith("  batching: ") for line in str(info.value).splitlines()[1:])
    others = [name for name in _prng_checks.CHECKS if name != "types"]
    extend.check_prng_impl(rbg, without=others)


# Keys of several axes


def keys() -> tuple[Any, np.ndarray]:
    """Four keys, and their words in pairs: one axis of two 64-bit integers."""
    array = random.split(random.key(0, impl="square"), 4)
    return array, pairs(array)


def pairs(array: Any) -> np.ndarray:
    words = np.asarray(random.key_data(array))
    return np.ascontiguousarray(words.reshape(*words.shape[:-2], 4)).view(np.uint64)


@pytest.mark.parametrize("name", ROWS)
def test_structure(name: str) -> None:
    on_keys, on_words = ROWS[name]
    array, words = keys()
    actual, expected = on_keys(array), on_words(words)
    if name == "ones":
        expected = expected * np.uint64(2**32 + 1)
    assert actual.dtype == array.dtype and actual.shape == expected.shape[:-1]
    np.testing.assert_array_equal(pairs(actual), expected)


def test_text_and_types() -> None:
    array, _ = keys()
    assert str(typeof(array)) == "key<square>[4]" and array.nbytes == 64
    words = np.asarray(random.key_data(array[0]))
    assert repr(array[0]) == f"Array((), dtype=key<square>) overlaying:\n{words}"
    assert "u32[4,2,2] = random_unwrap" in str(make_jaxpr(random.key_data)(array))
    same = random.wrap_key_data(random.key_data(array), impl="square")
    assert (same == array).all() and not (array == array[::-1]).any()
    with pytest.raises(TypeError, match=r"shape \(2, 2\) on its last axes, got uint32\[2\]"):
        random.wrap_key_data(np.zeros(2, U32), impl="square")


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_words_are_wrapped_under_vmap(axis: int) -> None:
    array, _ = keys()
    words = np.moveaxis(np.asarray(random.key_data(array)), 0, axis)
    wrapped = vmap(lambda w: random.wrap_key_data(w, impl="square"), axis)(words)
    assert (wrapped == array).all()
    assert wrapped.shape == (4,)


def test_transformations_equal_loops() -> None:
    array, _ = keys()

    def step(key: Any, x: Any) -> tuple[Any, Any]:
        key, own = random.split(key)
        return random.fold_in(key, x), random.normal(own, (2,)) * x

    xs = np.arange(1, 5, dtype=np.float32)
    key, rows = array[0], []
    for x in xs:
        key, row = step(key, x)
        rows.append(np.asarray(row))
    last, scanned = jit(lambda k: lax.scan(step, k, xs))(array[0])
    assert last == key
    np.testing.assert_allclose(scanned, rows, rtol=1e-6)
    batch, _ = vmap(step)(array, xs)
    assert all(step(k, x)[0] == b for k, x, b in zip(array, xs, batch))
    shuffled = random.permutation(array[1], array)
    assert sorted(pairs(shuffled).tolist()) == sorted(pairs(array).tolist())


def test_key_reuse_is_detected() -> None:
    with debug_key_reuse(True), pytest.raises(KeyReuseError, match="used before"):
        key = random.key(0, impl="square")
        jit(lambda k: random.normal(k) + random.uniform(k))(key)


def test_pickling_needs_registration() -> None:
    key = random.key(0, impl=define("local"))
    with pytest.raises(pickle.PicklingError, match=r"local cannot be pickled.*register_prng_impl"):
        pickle.dumps(key)
    data = pickle.dumps(random.key(0, impl="square")).replace(b"square", b"sphere")
    with pytest.raises(pickle.UnpicklingError, match=r"'sphere', which is not registered.*'rbg'"):
        pickle.loads(data)


def test_implementations_without_a_name_are_independent() -> None:
    first, second = define("same"), define("same")
    a, b = random.key(0, impl=first), random.key(0, impl=second)
    assert a.dtype != b.dtype
    np.testing.assert_array_equal(random.key_data(a), random.key_data(b))
    with pytest.raises(ValueError, match="unknown key implementation 'same'"):
        random.key(0, impl="same")
