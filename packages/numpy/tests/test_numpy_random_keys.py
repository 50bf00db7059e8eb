"""Typed keys: key arrays, implementations, and reuse."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import primax_numpy as pnp
from primax_core import (
    Array,
    ShapeDtypeStruct,
    config,
    debug_key_reuse,
    default_prng_impl,
    device_get,
    device_put,
    dtypes,
    enable_custom_prng,
    eval_shape,
    grad,
    jit,
    lax,
    legacy_prng_key,
    make_jaxpr,
    typeof,
    vmap,
)
from primax_core.errors import KeyReuseError
from primax_numpy import random

KEY = random.key(0)
KEYS = random.split(KEY, 4)
WORDS = np.asarray(random.key_data(KEYS))


def words(keys: Any) -> str:
    """The words of keys, or bits, in hexadecimal."""
    actual = random.key_data(keys) if dtypes.issubdtype(keys.dtype, dtypes.prng_key) else keys
    return " ".join(f"{v:08x}" for v in np.asarray(actual).ravel())


# Implementations: seed, bits, second child, child of 7

RECORDED = {
    "threefry2x32": (
        "00000000 0000002a", "7d1c13a2 ae0730d9 9dc3f9f9", "03d7b32d add083f4", "97d0552f 51bf719f",
    ),
    "rbg": (
        "00000000 0000002a 00000000 0000002a", "9c3738d2 b254e659 10d103e3",
        "03d7b32d add083f4 03d7b32d add083f4", "97d0552f 51bf719f 97d0552f 51bf719f",
    ),
    "unsafe_rbg": (
        "00000000 0000002a 00000000 0000002a", "9c3738d2 b254e659 10d103e3",
        "f4b92cbf 11c78816 3384dcc2 10606578", "7d6d2018 0ee979a1 41f26cbe 763beb9c",
    ),
    "threefry4x32": (
        "5fb8e897 dbe50d54 66a6fa19 bd789402", "a3510571 d9847a91 b80cf156",
        "1586a088 54918e34 5c38453e 988af5f3", "91bec1db e6ed0789 fb99f131 b1e9c24c",
    ),
    "philox4x32": (
        "dd97b048 1fcd9669", "51e13205 c029e4cf 8394adff", "39c56cee e5ed9716", "027e4198 04db0ad5",
    ),
    "philox2x32": ("ede5c790", "384bff4b 330e206b df209396", "18a03f01", "28cd8f00"),
}  # fmt: skip


@pytest.mark.parametrize("impl", RECORDED)
def test_implementations(impl: str) -> None:
    seed, bits, child, folded = RECORDED[impl]
    key = random.key(42, impl=impl)
    assert words(key) == seed
    assert words(random.bits(key, (3,))) == bits
    assert words(random.split(key)[1]) == child
    assert words(random.fold_in(key, 7)) == folded
    assert random.key_impl(key) == impl
    assert key.dtype == random.key_dtype(impl) and key.dtype.itemsize == 4 * len(seed.split())
    same = random.wrap_key_data(random.key_data(key), impl=impl)
    assert (same == key) and same.dtype == key.dtype
    with default_prng_impl(impl):
        raw = random.PRNGKey(42)
        assert words(raw) == seed and raw.dtype == np.uint32
        assert words(random.bits(raw, (3,))) == bits
        assert random.key(42).dtype == key.dtype and random.key_impl(raw) == impl


def test_names_of_implementations() -> None:
    assert random.key(1, dtype=KEY.dtype).dtype == KEY.dtype
    assert random.key(1, impl=random.key_dtype("rbg")).dtype.name == "key<rbg>"
    assert random.wrap_key_data(WORDS, dtype="threefry2x32").shape == (4,)


def test_batches_of_generated_bits_come_from_the_first_key() -> None:
    keys = random.split(random.key(3, impl="rbg"), 2)
    together = vmap(lambda k: random.bits(k, (3,)))(keys)
    np.testing.assert_array_equal(together, random.bits(keys[0], (2, 3)))


# Keys are arrays


def test_attributes() -> None:
    assert isinstance(KEYS, Array)
    assert (KEYS.shape, KEYS.ndim, KEYS.size, KEYS.nbytes) == ((4,), 1, 4, 32)
    assert repr(KEY) == str(KEY) == "Array((), dtype=key<fry>) overlaying:\n[0 0]"
    assert str(typeof(KEYS)) == "key<fry>[4]" and str(KEYS.dtype) == "key<fry>"
    assert dtypes.issubdtype(KEYS.dtype, dtypes.prng_key)
    assert dtypes.issubdtype(KEYS.dtype, dtypes.extended)
    assert eval_shape(lambda k: random.split(k, 3), KEY).dtype == KEY.dtype


ROWS: dict[str, tuple[Callable[[Any], Any], Callable[[np.ndarray], Any]]] = {
    "integer": (lambda k: k[1], lambda w: w[1]),
    "negative": (lambda k: k[-1], lambda w: w[-1]),
    "slice": (lambda k: k[1:3], lambda w: w[1:3]),
    "steps": (lambda k: k[::-2], lambda w: w[::-2]),
    "new axis": (lambda k: k[None], lambda w: w[None]),
    "positions": (lambda k: k[np.array([0, 3, 0])], lambda w: w[[0, 3, 0]]),
    "beyond": (lambda k: k[9], lambda w: w[3]),
    "mask": (lambda k: k[np.arange(4) % 2 == 0], lambda w: w[::2]),
    "traced": (lambda k: jit(lambda k, i: k[i])(k, 2), lambda w: w[2]),
    "reshape": (lambda k: k.reshape(2, 2), lambda w: w.reshape(2, 2, 2)),
    "transpose": (lambda k: k.reshape(2, 2).T, lambda w: w.reshape(2, 2, 2).swapaxes(0, 1)),
    "squeeze": (lambda k: k.reshape(4, 1).squeeze(), lambda w: w),
    "rows": (lambda k: list(k)[2], lambda w: w[2]),
    "stack": (lambda k: pnp.stack([k, k]), lambda w: np.stack([w, w])),
    "concatenate": (lambda k: pnp.concatenate([k, k]), lambda w: np.concatenate([w, w])),
    "where": (
        lambda k: pnp.where(np.arange(4) < 2, k, k[0]), lambda w: w[[0, 1, 0, 0]],
    ),
    "broadcast": (lambda k: pnp.broadcast_to(k, (2, 4)), lambda w: np.stack([w, w])),
    "list": (lambda k: pnp.asarray([k[0], k[1]]), lambda w: w[:2]),
    "set": (lambda k: k.at[1].set(k[0]), lambda w: w[[0, 0, 2, 3]]),
    "set some": (lambda k: k.at[np.array([0, 2])].set(k[2:]), lambda w: w[[2, 1, 3, 3]]),
    "get": (lambda k: k.at[2].get(), lambda w: w[2]),
    "zeros": (pnp.zeros_like, np.zeros_like),
    "ones": (pnp.ones_like, np.ones_like),
    "made": (lambda k: pnp.zeros((2,), k.dtype), lambda w: np.zeros_like(w[:2])),
    "full": (lambda k: pnp.full_like(k, k[1]), lambda w: w[[1] * 4]),
    "jit": (lambda k: jit(lambda k: k[::-1])(k), lambda w: w[::-1]),
    "vmap": (lambda k: vmap(lambda k: k)(k), lambda w: w),
    "scan": (lambda k: lax.scan(lambda c, k: (k, c), k[0], k)[1], lambda w: w[[0, 0, 1, 2]]),
    "cond": (lambda k: lax.cond(True, lambda k: k[1], lambda k: k[0], k), lambda w: w[1]),
    "while": (
        lambda k: lax.while_loop(lambda c: c[0] < 2, lambda c: (c[0] + 1, k[2]), (0, k[0]))[1],
        lambda w: w[2],
    ),
    "device_put": (device_put, lambda w: w),
    "device_get": (device_get, lambda w: w),
    "copy": (copy.copy, lambda w: w),
    "deepcopy": (copy.deepcopy, lambda w: w),
    "pickle": (lambda k: pickle.loads(pickle.dumps(k)), lambda w: w),
    "clone": (random.clone, lambda w: w),
}  # fmt: skip


@pytest.mark.parametrize("name", ROWS)
def test_structure(name: str) -> None:
    on_keys, on_words = ROWS[name]
    actual, expected = on_keys(KEYS), on_words(WORDS)
    assert actual.dtype == KEYS.dtype and actual.shape == expected.shape[:-1]
    np.testing.assert_array_equal(random.key_data(actual), expected)


def test_comparison() -> None:
    assert (KEYS == KEYS[1]).tolist() == [False, True, False, False]
    assert (KEYS != KEYS[1]).tolist() == [True, False, True, True]
    assert pickle.loads(pickle.dumps(KEYS.dtype)) == KEYS.dtype != random.key_dtype("rbg")
    assert hash(pickle.loads(pickle.dumps(KEYS.dtype))) == hash(KEYS.dtype)


REFUSED: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "add": (lambda: KEY + 1, TypeError, "add does not accept"),
    "less": (lambda: KEY < KEY, TypeError, "key<fry>"),
    "neg": (lambda: -KEY, TypeError, "key<fry>"),
    "other": (lambda: KEY == random.key(0, impl="rbg"), TypeError, "key<fry>, key<rbg>"),
    "number": (lambda: KEY == 3, TypeError, "key<fry>"),
    "bool": (lambda: bool(KEY), TypeError, "key_data"),
    "int": (lambda: int(KEY), TypeError, "key_data"),
    "hash": (lambda: hash(KEY), TypeError, "unhashable"),
    "numpy": (lambda: np.asarray(KEY), TypeError, r"random\.key_data"),
    "dtype": (lambda: np.dtype(KEY.dtype), TypeError, "key<fry>"),
    "astype": (lambda: KEY.astype(np.uint32), ValueError, "from key<fry> to uint32"),
    "item": (lambda: KEY.item(), TypeError, "key_data"),
    "len": (lambda: len(KEY), TypeError, "unsized"),
    "sum": (lambda: KEYS.sum(), TypeError, "key<fry>"),
    "grad": (lambda: grad(lambda k: 1.0)(KEY), TypeError, "key<fry>"),
    "indices": (lambda: KEYS[0, 0], IndexError, "Too many indices"),
    "both kinds": (lambda: pnp.concatenate([KEYS, random.PRNGKey(0)]), ValueError, "key<fry>"),
    "seed": (lambda: random.key(KEY), TypeError, "got a key"),
    "float seed": (lambda: random.key(1.5), TypeError, "must be an integer"),
    "float array": (lambda: random.key(np.float32(1)), TypeError, "must be an integer"),
    "seeds": (lambda: random.key(np.arange(3)), TypeError, "must be a scalar"),
    "name": (lambda: random.key(0, impl="dice"), ValueError, "'dice'.*'threefry2x32'"),
    "spec": (lambda: random.key(0, impl=3), TypeError, "int"),
    "both": (lambda: random.key(0, impl="rbg", dtype="rbg"), ValueError, "not both"),
    "words": (lambda: random.wrap_key_data(np.zeros(3, np.uint32)), TypeError, r"uint32\[3\]"),
    "float words": (lambda: random.wrap_key_data(np.zeros(2)), TypeError, "float64"),
    "no words": (lambda: random.wrap_key_data([0, 1]), TypeError, "list"),
    "data": (lambda: random.key_data(np.zeros(2)), TypeError, "key_data: a raw key"),
    "impl": (lambda: random.key_impl(3), TypeError, "key_impl: expected a key"),
    "many": (lambda: random.normal(KEYS), ValueError, r"normal.*\(4,\).*vmap"),
    "many to split": (lambda: random.split(KEYS), ValueError, "vmap"),
    "many to fold": (lambda: random.fold_in(KEYS, 1), ValueError, "vmap"),
    "negative": (lambda: random.split(KEY, -1), ValueError, "negative"),
    "float number": (lambda: random.split(KEY, 2.5), TypeError, "float"),  # type: ignore[arg-type]
    "folded key": (lambda: random.fold_in(KEY, KEY), TypeError, "integer as data"),
    "folded text": (lambda: random.fold_in(KEY, "a"), TypeError, "integer as data"),
    "folded array": (lambda: random.fold_in(KEY, np.arange(2)), TypeError, r"\(2,\)"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_unsupported_operations(name: str) -> None:
    call, error, text = REFUSED[name]
    with pytest.raises(error, match=text):
        call()


# Jaxprs


def test_jaxprs_show_key_operations() -> None:
    assert "random_bits[bit_width=32 shape=(3,)]" in str(
        make_jaxpr(lambda k: random.normal(k, (3,)))(KEY)
    )
    raw = random.PRNGKey(0)
    texts = {
        "key<fry>[3] = random_split[shape=(3,)] a": make_jaxpr(lambda k: random.split(k, 3))(KEY),
        "random_fold_in a 3:u32[]": make_jaxpr(lambda k: random.fold_in(k, np.uint32(3)))(KEY),
        "key<fry>[] = random_seed[impl=fry] a": make_jaxpr(random.key)(3),
        "key<fry>[] = random_clone a": make_jaxpr(random.clone)(KEY),
        "u32[2] = random_unwrap a": make_jaxpr(random.key_data)(KEY),
        "key<fry>[] = random_wrap[impl=fry] a": make_jaxpr(random.wrap_key_data)(raw),
        "u32[4,3] = random_bits[bit_width=32 shape=(3,)] a": make_jaxpr(
            vmap(lambda k: random.bits(k, (3,)))
        )(KEYS),
        "random_gamma[log_space=False] a b": make_jaxpr(random.gamma)(KEY, np.ones(3, np.float32)),
    }
    for text, program in texts.items():
        assert text in str(program)
    unused = jit(lambda k: (random.normal(k), 1.0)[1])
    assert float(unused(KEY)) == 1.0


def test_types_of_keys_as_unused_arguments() -> None:
    described = ShapeDtypeStruct((2,), random.key(0).dtype)
    assert jit(lambda x, key: x + 1)(2, described) == 3
    with pytest.raises(TypeError, match=r"key of <lambda> is ShapeDtypeStruct.*has no values"):
        jit(lambda x, key: random.bits(key[0]))(2, described)


def test_closed_over_keys() -> None:
    many = random.split(KEY, 20)
    draw = jit(lambda x: x * random.normal(KEY) + random.normal(many[19]))
    expected = 2 * random.normal(KEY) + random.normal(many[19])
    np.testing.assert_allclose(draw(2.0), expected, rtol=1e-6)
    np.testing.assert_allclose(grad(draw)(2.0), random.normal(KEY), rtol=1e-6)
    assert jit(lambda: KEY)() == KEY
    assert jit(lambda: many)()[3] == many[3]
    rows = vmap(lambda x: x * random.normal(KEY))(np.ones(3, np.float32))
    np.testing.assert_allclose(rows, [random.normal(KEY)] * 3, rtol=1e-6)


@pytest.mark.parametrize("axes", [(0, None), (None, 0), (0, 0), (1, 0)])
def test_batches_of_fold_in(axes: tuple[int | None, int | None]) -> None:
    keys = KEYS.reshape(2, 2)[None] if axes[0] == 1 else KEYS
    data = np.arange(4, dtype=np.uint32)
    if axes[0] == 1:
        data, keys = data[:2], KEYS.reshape(2, 2)
        actual = vmap(vmap(random.fold_in, (0, None)), axes)(keys, data)
        expected = [[random.fold_in(keys[j, i], data[i]) for j in range(2)] for i in range(2)]
        rows = [random.key_data(k) for row in expected for k in row]
        np.testing.assert_array_equal(random.key_data(actual.ravel()), np.stack(rows))
        return
    key = keys if axes[0] == 0 else KEY
    number = data if axes[1] == 0 else np.uint32(5)
    actual = vmap(random.fold_in, axes)(key, number)
    for i in range(4):
        k = key[i] if axes[0] == 0 else key
        d = number[i] if axes[1] == 0 else number
        assert actual[i] == random.fold_in(k, d)


# Options


def test_raw_keys_can_raise_errors() -> None:
    raw = random.PRNGKey(0)
    with legacy_prng_key("error"), pytest.raises(ValueError, match="normal was given a raw"):
        random.normal(raw)
    with legacy_prng_key("warn"):
        for _ in range(2):
            with pytest.warns(UserWarning, match="split was given a raw"):
                random.split(raw)
    random.normal(raw)
    with enable_custom_prng(True):
        assert random.PRNGKey(0) == KEY


def test_seed_offset() -> None:
    config.update("random_seed_offset", 5)
    try:
        shifted = [words(random.key(seed)) for seed in (1, np.int32(1))]
    finally:
        config.update("random_seed_offset", 0)
    assert shifted == [words(random.key(6))] * 2


# Reuse


def twice(key: Array) -> Array:
    return random.normal(key) + random.uniform(key)


def again(use: Callable[[Any], Any]) -> Callable[[], Any]:
    def call() -> None:
        key = random.key(1)
        use(key)
        random.normal(key)

    return call


def rows_twice() -> None:
    keys = random.split(random.key(1))
    random.normal(keys[1])
    random.normal(keys[-1])


def rows_of_a_loop() -> None:
    keys = random.split(random.key(1))
    lax.scan(lambda c, k: (c, random.normal(k)), 0, keys)
    random.normal(keys[0])


REUSED: dict[str, Callable[[], Any]] = {
    "eager": lambda: twice(random.key(1)),
    "jit": lambda: jit(twice)(random.key(1)),
    "calls": again(jit(random.normal)),
    "split": again(random.split),
    "gamma": again(lambda k: random.gamma(k, 1.0)),
    "same row": rows_twice,
    "shuffled": again(lambda k: random.permutation(k, 3)),
    "stacked": again(lambda k: pnp.stack([k, random.key(2)])),
    "moved": again(lambda k: random.normal(k.reshape(1)[0])),
    "returned": again(lambda k: jit(lambda k: (k, random.normal(k)))(k)),
    "carried": lambda: lax.scan(lambda k, _: (k, random.normal(k)), random.key(1), length=2),
    "closed over": lambda: (
        lambda k: lax.scan(lambda c, _: (c + random.normal(k), None), 0.0, length=2)
    )(random.key(1)),
    "looped": lambda: lax.while_loop(
        lambda c: c[0] < 1, lambda c: (c[0] + random.uniform(c[1]), c[1]), (0.0, random.key(1))
    ),
    "sliced": rows_of_a_loop,
    "branches": again(
        lambda k: lax.cond(True, lambda k: random.normal(k), lambda k: 0.0, k)
    ),
    "mapped": lambda: vmap(twice)(random.split(random.key(1))),
    "derived": lambda: grad(lambda x: x * twice(random.key(1)))(1.0),
    "rows of a program": lambda: jit(
        lambda k: (lambda ks: random.normal(ks[0]) + random.normal(ks[0]))(random.split(k))
    )(random.key(1)),
}  # fmt: skip


@pytest.mark.parametrize("name", REUSED)
def test_reuse_is_detected(name: str) -> None:
    REUSED[name]()
    with debug_key_reuse(True), pytest.raises(KeyReuseError, match=r"used before, by .*\.py:\d+"):
        REUSED[name]()


def test_reuse_errors_name_both_locations() -> None:
    with debug_key_reuse(True), pytest.raises(KeyReuseError) as error:
        twice(random.key(1))
    line = twice.__code__.co_firstlineno + 1
    assert str(error.value).count(f"test_numpy_random_keys.py:{line}:") == 2
    assert "clone" in str(error.value)


def rows_apart() -> None:
    keys = random.split(random.key(1), 3)
    for key in keys:
        random.normal(key)
    keys = random.split(random.key(1), 3)
    random.normal(keys[0]), random.normal(keys[1]), random.normal(keys[np.int32(2)])


USED_ONCE: dict[str, Callable[[], Any]] = {
    "clone": again(lambda k: random.normal(random.clone(k))),
    "fold_in": again(lambda k: (random.fold_in(k, 1), random.normal(random.fold_in(k, 2)))),
    "data": again(random.key_data),
    "compared": again(lambda k: k == k),
    "rows": rows_apart,
    "raw": lambda: twice(random.PRNGKey(1)),
    "split in a loop": lambda: lax.scan(
        lambda k, _: (random.split(k)[0], None), random.key(1), length=3
    ),
    "rows of a loop": lambda: lax.scan(
        lambda c, k: (c, random.normal(k)), 0, random.split(random.key(1), 3)
    ),
    "one of two branches": lambda: lax.cond(
        True, lambda k: random.normal(k), lambda k: random.uniform(k), random.key(1)
    ),
    "rows of a program": lambda: jit(
        lambda k: (lambda ks: random.normal(ks[0]) + random.normal(ks[1]))(random.split(k))
    )(random.key(1)),
    "distributions": lambda: random.t(random.key(1), 3.0),
}  # fmt: skip


@pytest.mark.parametrize("name", USED_ONCE)
def test_single_uses_are_accepted(name: str) -> None:
    with debug_key_reuse(True):
        USED_ONCE[name]()


def test_keys_of_keys_in_one_executable() -> None:
    """Each cipher uses the result of another as key: fused, they would take minutes to compile."""

    def layers(key: Any) -> Any:
        weights = []
        for _ in range(6):
            key, sub = random.split(key)
            keys = random.split(sub, 3)
            weights.append(vmap(lambda k: random.normal(random.fold_in(k, 1)))(keys))
        return weights

    key = random.key(7)
    for compiled, eager in zip(jit(layers)(key), layers(key)):
        np.testing.assert_allclose(compiled, eager, rtol=1e-6)


def test_closeness_of_keys_is_equality() -> None:
    keys = random.split(random.key(0), 3)
    assert pnp.isclose(keys, keys[1]).tolist() == [False, True, False]
    assert bool(pnp.allclose(keys, keys)) and not bool(pnp.allclose(keys, keys[::-1]))
