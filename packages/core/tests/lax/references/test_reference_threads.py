"""References shared by several threads."""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor

import numpy as np

import primax_core as px
from primax_core import ref as r

F32 = np.float32
THREADS, ROUNDS = 8, 50


def in_threads(work):
    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(work, range(THREADS)))


def test_every_swapped_value_is_returned_once():
    q = px.new_ref(np.int32(-1))
    values = np.arange(THREADS * ROUNDS, dtype=np.int32).reshape(THREADS, ROUNDS)
    out = in_threads(lambda k: [int(r.swap(q, ..., v)) for v in values[k]])
    assert sorted([*itertools.chain(*out), int(q[...])]) == [-1, *range(THREADS * ROUNDS)]


def test_sums_are_not_lost():
    q, p = px.new_ref(np.zeros(4, F32)), px.new_ref(np.zeros(4, F32))
    add = px.jit(
        lambda q, p: (r.addupdate(q, 1, F32(1)), r.addupdate(p, ..., np.ones(4, F32)), None)[2]
    )

    def work(k):
        for _ in range(ROUNDS):
            add(q, p) if k % 2 else add(p, q)
            r.addupdate(q, 2, F32(1))
            assert q[...].shape == (4,)

    in_threads(work)
    n = THREADS * ROUNDS
    both = np.array([q[...], p[...]])
    assert both.sum() == n + 4 * n + n and both[0, 2] >= n
