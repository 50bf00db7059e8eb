"""Measurements in turns, with a clock that the functions move."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from primax_kernels._tuning.measuring import measure


class Clock:
    """A clock that moves when a function runs; ``calls`` are the numbers of those that ran."""

    def __init__(self) -> None:
        self.now = 0.0
        self.calls: list[int] = []

    def __call__(self) -> float:
        return self.now

    def run(self, number: int, *seconds: float) -> Callable[[int], None]:
        """A function whose runs take these times in turn, the last one from then on."""
        left = list(seconds)

        def run(n: int) -> None:
            self.calls.append(number)
            for _ in range(n):
                self.now += left.pop(0) if len(left) > 1 else left[0]

        return run


def test_the_times_of_runs() -> None:
    clock = Clock()
    timings = measure([clock.run(0, 0.5), clock.run(1, 0.45)], rounds=12, seconds=99, clock=clock)
    assert [t.best for t in timings] == pytest.approx([0.5, 0.45])
    assert [len(t.samples) for t in timings] == [12, 12]
    assert not any(t.stopped for t in timings)


def test_candidates_run_in_turns() -> None:
    clock = Clock()
    measure([clock.run(0, 1.0), clock.run(1, 1.0)], rounds=3, seconds=99, clock=clock)
    assert clock.calls == [0, 0, 1, 1, 0, 1, 0, 1, 0, 1]


def test_slow_candidates_are_stopped() -> None:
    clock = Clock()
    seconds = [1.0, 1.1, 1.2, 1.5, 3.0, 5.0, 21.0]
    runs = [clock.run(i, s) for i, s in enumerate(seconds)]
    timings = measure(runs, rounds=10, seconds=1e9, clock=clock)
    assert [len(t.samples) for t in timings] == [10, 10, 8, 5, 3, 2, 1]
    assert [t.stopped for t in timings] == [False, False, True, True, True, True, True]
    assert timings[6].best == pytest.approx(21.0)


def test_a_disturbance_does_not_stop_a_candidate() -> None:
    clock = Clock()
    disturbed = clock.run(1, 1.0, 1.0, 8.0, 0.9)
    timings = measure([clock.run(0, 1.0), disturbed], rounds=6, seconds=1e9, clock=clock)
    assert timings[1].samples[0] == 8.0
    assert timings[1].best == pytest.approx(0.9) and not timings[1].stopped
    assert timings[1].median == pytest.approx(0.9)


def test_short_functions_are_repeated() -> None:
    clock = Clock()
    (timing,) = measure([clock.run(0, 1e-4)], rounds=4, sample=2e-3, clock=clock)
    assert timing.best == pytest.approx(1e-4)
    assert clock.now == pytest.approx(2e-4 + 4 * 20e-4)


def test_no_round_begins_after_the_limit() -> None:
    clock = Clock()
    timings = measure([clock.run(i, 1.0) for i in range(2)], rounds=50, seconds=9.5, clock=clock)
    assert [len(t.samples) for t in timings] == [3, 3]


def test_errors_leave_candidates_out() -> None:
    clock = Clock()
    runs_left = [3]

    def fails(n: int) -> None:
        runs_left[0] -= 1
        if runs_left[0] == 0:
            raise ValueError("out of memory")
        clock.now += 0.1

    timings = measure([fails, clock.run(1, 1.0)], rounds=3, clock=clock)
    assert isinstance(timings[0].error, ValueError) and timings[1].error is None
    assert timings[1].best == 1.0
    assert timings[0].best == timings[0].median == float("inf")


def test_a_single_candidate_is_not_measured_long() -> None:
    clock = Clock()
    (timing,) = measure([clock.run(0, 0.01)], rounds=50, clock=clock)
    assert len(timing.samples) == 4
