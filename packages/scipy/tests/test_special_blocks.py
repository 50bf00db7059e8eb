"""Elements sorted into blocks, branches that are skipped, and sines of reduced arguments."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import scipy.special as peer

from primax_core import enable_x64, jit, make_jaxpr, vmap
from primax_scipy import special
from primax_scipy.special._operands import BLOCK, LEVELS, if_any, in_blocks, level
from primax_scipy.special._sines import of_turns, sine_and_cosine, sine_and_cosine_of_moderate
from test_support import assert_close, check_derivatives


@pytest.fixture(autouse=True)
def double_precision() -> Iterator[None]:
    with enable_x64(True), np.errstate(all="ignore"):
        yield


RNG = np.random.default_rng(7)
SIZE = 2 * BLOCK + 301  # three blocks, of which the last is incomplete


def _scaled(low: float, high: float) -> np.ndarray:
    return np.exp(RNG.uniform(np.log(low), np.log(high), SIZE))


FUNCTIONS = {
    "hyp2f1": (
        RNG.uniform(0.5, 3, SIZE), RNG.uniform(0.5, 3, SIZE), RNG.uniform(3, 6, SIZE),
        RNG.permutation(np.concatenate([RNG.uniform(-9, 1, SIZE - 4), [1.0, 0.0, 2.0, np.nan]])),
    ),
    "jv": (RNG.permutation(np.append(RNG.uniform(-9, 20, SIZE - 1), 500.0)), _scaled(0.05, 80)),
    "iv": (RNG.uniform(0, 20, SIZE), _scaled(0.05, 300)),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_blocks_have_the_values_of_short_arrays(name: str) -> None:
    operands = FUNCTIONS[name]
    fun = jit(getattr(special, name))
    pieces = [
        np.asarray(fun(*[v[i : i + 1447] for v in operands])) for i in range(0, SIZE - 1446, 1447)
    ]
    whole = np.asarray(fun(*operands))
    assert whole.shape == (SIZE,)
    assert_close(whole[: 3 * 1447], np.concatenate(pieces), rtol=1e-14)


def test_operands_of_several_axes_keep_their_positions() -> None:
    v, x = (u[: 2 * BLOCK].reshape(2, 4, -1) for u in FUNCTIONS["iv"])
    assert_close(special.iv(v, x), peer.iv(v, x), rtol=1e-11)
    assert_close(vmap(special.iv)(v, x), peer.iv(v, x), rtol=1e-11)


def test_blocks_are_sorted_by_their_work() -> None:
    seen = []

    def record(x):
        seen.append(x)
        return 2 * x

    x = RNG.permutation(np.repeat(np.arange(4.0), BLOCK))
    doubled = jit(in_blocks(record, level))
    assert_close(doubled(x), 2 * x)
    assert seen[0].shape == (BLOCK,)
    assert "sort" in str(make_jaxpr(in_blocks(record, level))(x))
    assert "sort" not in str(make_jaxpr(in_blocks(record))(x))
    assert "sort" not in str(make_jaxpr(in_blocks(record, level))(x[:BLOCK]))


def test_levels() -> None:
    x = np.array([np.nan, -np.inf, -1.0, 0.5, 3.9, LEVELS - 1.0, 1e30, np.inf])
    assert np.asarray(level(x)).tolist() == [0, 0, 0, 0, 3, LEVELS - 1, LEVELS - 1, LEVELS - 1]


def test_branches_without_elements_are_zero() -> None:
    x = np.array([1.0, 2.0])
    pair = lambda x: (x + 1, x * 3)
    one, two = if_any(x > 5, 2, pair, x)
    assert np.asarray(one).tolist() == [0, 0] == np.asarray(two).tolist()
    one, two = jit(lambda x: if_any(x > 1, 2, pair, x))(x)
    assert np.asarray(one).tolist() == [2, 3] and np.asarray(two).tolist() == [3, 6]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [1.0, 1e3, 1e9])
def test_sine_and_cosine(size: float, dtype: type) -> None:
    x = np.append(RNG.uniform(-size, size, 300), [0, -0.0]).astype(dtype)
    sine, cosine = sine_and_cosine(x)
    atol = 2 * float(np.finfo(dtype).eps)
    assert_close(sine, np.sin(x.astype(np.float64)).astype(dtype), rtol=0, atol=atol)
    assert_close(cosine, np.cos(x.astype(np.float64)).astype(dtype), rtol=0, atol=atol)


@pytest.mark.parametrize(
    ("dtype", "limit"), [(np.float32, 1e7), (np.float32, 1e4), (np.float64, 1e12)]
)
def test_sine_and_cosine_without_a_branch(dtype: type, limit: float) -> None:
    x = np.append(RNG.uniform(-limit, limit, 300), [0, 1]).astype(dtype)
    sine, cosine = jit(sine_and_cosine_of_moderate)(x)
    atol = 2 * float(np.finfo(dtype).eps)
    assert_close(sine, np.sin(x.astype(np.float64)).astype(dtype), rtol=0, atol=atol)
    assert_close(cosine, np.cos(x.astype(np.float64)).astype(dtype), rtol=0, atol=atol)
    large = sine_and_cosine_of_moderate(np.array([1e17, 1e30]).astype(dtype))
    assert (np.abs(np.asarray(large)) <= 1).all()
    assert np.isnan(np.asarray(sine_and_cosine_of_moderate(np.array([np.nan, np.inf])))).all()


def test_sine_and_cosine_are_finite_functions_of_turns() -> None:
    sine, cosine = of_turns(np.array([0.0, 0.25, -0.25, 0.5, 3.75, 1e9]))
    assert np.asarray(sine).tolist() == [0, 1, -1, 0, -1, 0]
    assert np.asarray(cosine).tolist() == [1, 0, 0, -1, 0, 1]
    check_derivatives(lambda x: of_turns(x)[0] + 2 * sine_and_cosine(x)[1], np.float64(0.7))
    assert np.isnan(np.asarray(sine_and_cosine(np.array([np.nan, np.inf])))).all()


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_wofz_of_extreme_numbers(dtype: type) -> None:
    parts = np.array([0, 1e-30, -1e-8, 0.4, 3, -7, 1e4, -2e5, 1e30, np.inf, -np.inf])
    x, y = (v.ravel() for v in np.meshgrid(parts, parts[parts >= 0]))
    z = np.empty(x.shape, dtype)
    z.real, z.imag = x, y
    expected = peer.wofz(z.astype(np.complex128))
    tiny = float(np.finfo(z.real.dtype).tiny)
    for part in (np.real, np.imag):
        assert_close(
            part(special.wofz(z)), part(expected).astype(z.real.dtype), rtol=1e-5, atol=tiny
        )


def test_wofz_is_one_loop_and_accurate_for_large_exact_products() -> None:
    z = np.array([1000 - 1000j, -3e5 - 3e5j, 1024 - 1023.9921875j])
    assert_close(special.wofz(z), peer.wofz(z), rtol=1e-12)
    many = np.zeros(100_000, np.complex64)
    text = jit(special.wofz).lower(many).compile().as_text()
    assert text[text.index("ENTRY") :].count(" fusion(") == 1
