"""Convolutions in groups and small ones in the forms for the CPU, against a naive sum."""

import itertools

import ml_dtypes
import numpy as np
import pytest

from primax_core.lax import ConvDimensionNumbers, conv_general_dilated, conv_groups

FORMS = {"taps": "_by_taps", "groups": "_by_groups"}


@pytest.fixture
def used(monkeypatch):
    """Forms are used however small the work is; their names are collected."""
    for name in ("_LITTLE", "_LITTLE_IN_BATCH_GROUPS", "_LITTLE_IN_LOOP"):
        monkeypatch.setattr(conv_groups, name, 0)
    found = []
    for short, name in FORMS.items():

        def spy(*args, form=getattr(conv_groups, name), short=short):
            found.append(short)
            return form(*args)

        monkeypatch.setattr(conv_groups, name, spy)
    return found


def naive(x, k, strides, pads, before, within, groups, batches):
    """Batch and features first, in exact integers."""
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


# shape and kernel with batch and features first; strides, pads, dilations, groups of features and
# of the batch; the form.
CASES = {
    "depthwise": ((2, 4, 6, 7), (4, 1, 3, 2), (1, 2), ((1, 1), (0, 2)), (1, 1), (1, 1), 4, 1, "taps"),
    "multiplier": ((2, 3, 6, 5), (6, 1, 2, 2), (1, 1), ((-1, 1), (0, 0)), (2, 1), (1, 2), 3, 1, "taps"),
    "grouped": ((1, 6, 9), (4, 3, 4), (2,), ((2, -1),), (1,), (2,), 2, 1, "taps"),
    "dense": ((2, 2, 5, 6), (3, 2, 3, 3), (1, 1), ((1, 1), (1, 1)), (1, 2), (1, 1), 1, 1, "taps"),
    "batch groups": ((4, 2, 5, 5), (6, 2, 2, 2), (1, 1), ((0, 0), (1, 0)), (1, 1), (1, 1), 1, 2, "taps"),
    "volume": ((1, 2, 4, 3, 4), (2, 1, 2, 2, 2), (1, 1, 1), ((0, 1),) * 3, (1,) * 3, (1,) * 3, 2, 1, "taps"),
    "many features": ((2, 12, 6, 5), (4, 6, 4, 4), (1, 2), ((1, 1), (2, 2)), (1, 1), (1, 1), 2, 1, "groups"),
    "kernel's gradient": ((4, 8, 7, 7), (4, 8, 5, 5), (1, 1), ((1, 1), (1, 0)), (1, 1), (1, 1), 1, 4, "groups"),
    "of few groups": ((6, 8, 7, 7), (9, 8, 5, 5), (1, 1), ((0, 1), (1, 1)), (1, 1), (1, 1), 1, 3, "groups"),
}  # fmt: skip
LAYOUTS = {"first": lambda n: range(n), "last": lambda n: (0, *range(2, n), 1)}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("case", CASES)
def test_forms_compute_the_convolution(used, case, layout):
    shape, window, *params, form = CASES[case]
    rng = np.random.default_rng(0)
    x, k = (rng.integers(-4, 5, s).astype(np.float32) for s in (shape, window))
    strides, pads, before, within, groups, batches = params
    order = list(LAYOUTS[layout](len(shape)))
    places = tuple(np.argsort(order).tolist())
    found = conv_general_dilated(
        x.transpose(order), k.transpose(order), strides, pads, before, within,
        ConvDimensionNumbers(places, places, places), groups, batches,
    )  # fmt: skip
    assert used[0] == form
    np.testing.assert_array_equal(found, naive(x, k, *params).transpose(order))


@pytest.mark.parametrize(
    ("dtype", "preferred"),
    [(np.int8, np.int32), (np.int32, None), (ml_dtypes.bfloat16, None), (np.float16, np.float32)],
)
def test_dtypes_of_shifted_sums(used, dtype, preferred):
    rng = np.random.default_rng(0)
    x, k = (rng.integers(-4, 5, s) for s in ((1, 3, 8, 8), (3, 1, 3, 3)))
    found = conv_general_dilated(
        x.astype(dtype), k.astype(dtype), (1, 1), "VALID", feature_group_count=3,
        preferred_element_type=preferred,
    )  # fmt: skip
    assert used == ["taps"]
    assert found.dtype == np.dtype(preferred or dtype)
    plain = ((0, 0),) * 2, (1, 1), (1, 1), 3, 1
    expected = naive(x, k, (1, 1), *plain).astype(found.dtype)
    np.testing.assert_array_equal(np.asarray(found), expected)


def test_little_work_is_left_to_the_plain_form():
    assert conv_groups._LITTLE > 100
