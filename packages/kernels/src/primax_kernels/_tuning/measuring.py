"""Times of several functions, measured in turns."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

_FACTORS: Final = {2: 4.0, 3: 2.0, 5: 1.4, 8: 1.15}
"""By the number of rounds: candidates slower by this factor are not measured further."""

_HOPELESS: Final = 20.0


@dataclass
class Timing:
    """Seconds of each run of a candidate.

    Attributes:
      samples: seconds per run, one for each round.
      error: the exception that ended a run.
      stopped: whether it was clearly slower, and was not measured in all rounds.
    """

    samples: list[float] = field(default_factory=list)
    error: Exception | None = None
    stopped: bool = False

    @property
    def best(self) -> float:
        """The least time; infinite if there is none."""
        return min(self.samples, default=float("inf"))

    @property
    def median(self) -> float:
        """The median time; infinite if there is none."""
        return statistics.median(self.samples) if self.samples else float("inf")


def measure(
    runs: Sequence[Callable[[int], None]], *, rounds: int = 12, seconds: float = 5.0,
    sample: float = 2e-3, clock: Callable[[], float] = time.perf_counter,
) -> list[Timing]:  # fmt: skip
    """Times of functions, measured in turns so that changes of the machine's load affect all.

    A candidate whose least time is clearly greater than that of the fastest is dropped after 2, 3,
    5 and 8 rounds, so that most of the time belongs to the fast ones. One whose first run takes 20
    times as long is dropped before them.

    Args:
      runs: functions of a number of repetitions, which return when all of them have ended.
      rounds: samples of each candidate that is not dropped.
      seconds: no further round begins after this time.
      sample: seconds that a sample takes at least; short functions are repeated.
      clock: the time in seconds.
    """
    timings = [Timing() for _ in runs]
    start = clock()
    once = [_first_run(run, t, clock) for run, t in zip(runs, timings)]
    alive = [i for i, t in enumerate(timings) if t.error is None]
    limit = _HOPELESS * min((once[i] for i in alive), default=0.0)
    for i in alive:
        if once[i] > max(limit, sample):
            timings[i].stopped = True
            timings[i].samples.append(once[i])
    alive = [i for i in alive if not timings[i].stopped]
    repetitions = [1 if t >= sample else round(sample / max(t, sample / 1000)) for t in once]
    for n in range(1, rounds + 1):
        for i in alive:
            _sample(runs[i], timings[i], repetitions[i], clock)
        alive = [i for i in alive if timings[i].error is None]
        if factor := _FACTORS.get(n):
            limit = factor * min((timings[i].best for i in alive), default=0.0)
            for i in alive:
                timings[i].stopped = timings[i].best > limit
            alive = [i for i in alive if not timings[i].stopped]
        if len(alive) < 2 and n >= min(rounds, 4) or clock() - start > seconds:
            break
    return timings


def _first_run(run: Callable[[int], None], timing: Timing, clock: Callable[[], float]) -> float:
    """Seconds of one run, after one that is not counted."""
    try:
        run(1)
        begin = clock()
        run(1)
    except Exception as error:
        timing.error = error
        return 0.0
    return clock() - begin


def _sample(run: Callable[[int], None], timing: Timing, n: int, clock: Callable[[], float]) -> None:
    begin = clock()
    try:
        run(n)
    except Exception as error:
        timing.error = error
        return
    timing.samples.append((clock() - begin) / n)
