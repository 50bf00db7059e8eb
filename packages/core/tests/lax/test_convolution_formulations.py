"""The CPU forms of grouped and small convolutions against a naive sum."""

import itertools
from functools import partial

import ml_dtypes
import numpy as np
import pytest

from primax_core import jit, vjp
from primax_core._ir.avals import ShapedArray
from primax_core.lax import ConvDimensionNumbers, conv_general_dilated, conv_groups
from primax_core.lax.convolution import conv_general_dilated_p

FORMS = {"taps": "_by_taps", "groups": "_by_groups"}


@pytest.fixture
def formed(monkeypatch):
    """The result of a form, regardless of the amount of work, and the form's name."""
    for name in ("_LITTLE", "_LITTLE_IN_BATCH_GROUPS", "_LITTLE_IN_LOOP"):
        monkeypatch.setattr(conv_groups, name, 0)
    used = []

    def spied(short, form):
        def spy(*args):
            used.append(short)
            return form(*args)

        return spy

    for short, name in FORMS.items():
        monkeypatch.setattr(conv_groups, name, spied(short, getattr(conv_groups, name)))

    def run(x, k, out, layout):
        convolve = partial(
            conv_general_dilated_p.bind,
            precision=None,
            preferred_element_type=None,
            out_sharding=None,
        )
        types = [ShapedArray(a.shape, np.dtype(a.dtype)) for a in (x, k, out)]
        form = conv_groups.form_on_cpu(convolve, *types, layout)
        return np.asarray(jit(form)(x, k)), used[0]

    return run


def naive(x, k, strides, pads, before, within, groups, batches):
    """Convolution in exact integers, with batch and features first."""
    n, many = x.ndim - 2, groups * batches
    spread = [(s - 1) * d + 1 for s, d in zip(x.shape[2:], before)]
    full = np.zeros((*x.shape[:2], *spread))
    full[(..., *[slice(None, None, d) for d in before])] = x
    for a, (low, high) in enumerate(pads, 2):
        widths = [(0, 0)] * full.ndim
        widths[a] = (max(low, 0), max(high, 0))
        full = np.pad(full, widths)
        full = full.take(range(max(-low, 0), full.shape[a] - max(-high, 0)), a)
    sizes = [
        (full.shape[a + 2] - (k.shape[a + 2] - 1) * within[a] - 1) // strides[a] + 1
        for a in range(n)
    ]
    examples, inputs = x.shape[0] // batches, k.shape[1]
    out = np.zeros((examples, k.shape[0], *sizes))
    for o in range(k.shape[0]):
        g = o // (k.shape[0] // many)
        part = (
            full[g * examples : (g + 1) * examples]
            if batches > 1
            else full[:, g * inputs : (g + 1) * inputs]
        )
        for tap in itertools.product(*map(range, k.shape[2:])):
            at = [
                slice(t * w, t * w + (z - 1) * s + 1, s)
                for t, w, z, s in zip(tap, within, sizes, strides)
            ]
            out[:, o] += np.einsum("ni...,i->n...", part[(..., *at)], k[(o, slice(None), *tap)])
    return out


def case(shape, window, form, pads, strides=None, before=None, within=None, groups=1, batches=1):
    """A case with batch and features first; dilations and strides are 1 by default."""
    ones = (1,) * len(pads)
    return (
        shape,
        window,
        strides or ones,
        pads,
        before or ones,
        within or ones,
        groups,
        batches,
        form,
    )


SAME = ((1, 1), (1, 1))
CASES = {
    "depthwise": case(
        (2, 4, 6, 7), (4, 1, 3, 2), "taps", ((1, 1), (0, 2)), strides=(1, 2), groups=4
    ),
    "multiplier": case(
        (2, 3, 6, 5), (6, 1, 2, 2), "taps", ((-1, 1), (0, 0)), None, (2, 1), (1, 2), groups=3
    ),
    "grouped": case((1, 6, 9), (4, 3, 4), "taps", ((2, -1),), (2,), None, (2,), groups=2),
    "dense": case((2, 2, 5, 6), (3, 2, 3, 3), "taps", SAME, before=(1, 2)),
    "batch groups": case((4, 2, 5, 5), (6, 2, 2, 2), "taps", ((0, 0), (1, 0)), batches=2),
    "volume": case((1, 2, 4, 3, 4), (2, 1, 2, 2, 2), "taps", ((0, 1),) * 3, groups=2),
    "many features": case((2, 12, 6, 5), (4, 6, 4, 4), "groups", SAME, strides=(1, 2), groups=2),
    "kernel's gradient": case((4, 8, 7, 7), (4, 8, 5, 5), "groups", SAME, batches=4),
    "of few groups": case((6, 8, 7, 7), (9, 8, 5, 5), "groups", SAME, batches=3),
}
LAYOUTS = {"first": lambda n: range(n), "last": lambda n: (0, *range(2, n), 1)}


def layout_of(order, strides, pads, before, within, groups, batches):
    places = tuple(np.argsort(order).tolist())
    return {
        "window_strides": strides,
        "padding": pads,
        "lhs_dilation": before,
        "rhs_dilation": within,
        "dimension_numbers": ConvDimensionNumbers(places, places, places),
        "feature_group_count": groups,
        "batch_group_count": batches,
    }


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("case", CASES)
def test_forms_compute_the_convolution(formed, case, layout):
    shape, window, *params, form = CASES[case]
    rng = np.random.default_rng(0)
    x, k = (rng.integers(-4, 5, s).astype(np.float32) for s in (shape, window))
    order = list(LAYOUTS[layout](len(shape)))
    expected = naive(x, k, *params).astype(np.float32).transpose(order)
    x, k = x.transpose(order), k.transpose(order)
    actual, used = formed(x, k, expected, layout_of(order, *params))
    assert used == form
    np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize(
    ("dtype", "result"),
    [(np.int8, np.int32), (np.int32, np.int32), (np.float16, np.float32)]
    + [(ml_dtypes.bfloat16, ml_dtypes.bfloat16)],
)
def test_dtypes_of_shifted_sums(formed, dtype, result):
    rng = np.random.default_rng(0)
    x, k = (rng.integers(-4, 5, s).astype(dtype) for s in ((1, 3, 8, 8), (3, 1, 3, 3)))
    params = (1, 1), ((0, 0),) * 2, (1, 1), (1, 1), 3, 1
    expected = naive(x, k, *params).astype(result)
    actual, _ = formed(x, k, expected, layout_of(range(4), *params))
    assert actual.dtype == result
    np.testing.assert_array_equal(actual, expected)


def test_forms_are_used_only_if_faster():
    def form(x, k, groups, dtype=np.float32):
        layout = layout_of(range(4), (1, 1), ((1, 1),) * 2, (1, 1), (1, 1), groups, 1)
        out = (x[0], k[0], *x[2:])
        types = [ShapedArray(s, np.dtype(dtype)) for s in (x, k, out)]
        return conv_groups.form_on_cpu(None, *types, layout)

    assert form((8, 32, 32, 32), (32, 1, 3, 3), 32)
    assert form((8, 64, 32, 32), (64, 16, 3, 3), 4)
    assert form((8, 32, 32, 32), (32, 32, 3, 3), 1) is None
    assert form((1, 2, 4, 4), (2, 1, 3, 3), 2) is None
    assert form((8, 32, 32, 32), (32, 1, 3, 3), 32, np.complex64) is None


@pytest.mark.parametrize("groups", [4, 16])
def test_gradients_of_grouped_convolutions(groups):
    """A convolution is linear in the input and in the kernel."""
    rng = np.random.default_rng(0)
    x = rng.integers(-3, 4, (4, 16, 10, 10)).astype(np.float32)
    k = rng.integers(-3, 4, (16, 16 // groups, 3, 3)).astype(np.float32)
    ct = rng.integers(-3, 4, x.shape).astype(np.float32)

    def run(x, k):
        return conv_general_dilated(x, k, (1, 1), "SAME", feature_group_count=groups)

    out, back = vjp(run, x, k)
    expected = naive(x, k, (1, 1), ((1, 1),) * 2, (1, 1), (1, 1), groups, 1)
    np.testing.assert_array_equal(out, expected)
    for actual, primal in zip(back(ct), (x, k)):
        assert np.vdot(actual, primal) == np.vdot(ct, expected)
