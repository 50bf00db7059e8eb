"""Results of the conformance kit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

PASSED: Final = "passed"
FAILED: Final = "failed"
SKIPPED: Final = "does not apply"
UNSUPPORTED: Final = "declared unsupported"
XFAILED: Final = "failed as expected"
STALE: Final = "passed, but was expected to fail"

_BAD: Final = (FAILED, STALE)


@dataclass(frozen=True)
class Verdict:
    """The outcome of one check on one sample of one primitive.

    Attributes:
      detail: the error, or the reason why the check does not apply.
      reproduction: Python code that repeats the failed check.
    """

    primitive: str
    sample: int
    check: str
    outcome: str
    detail: str = ""
    reproduction: str = ""

    @property
    def ok(self) -> bool:
        """True if the verdict is not a failure."""
        return self.outcome not in _BAD

    def __str__(self) -> str:
        text = f"{self.primitive}, sample {self.sample}, {self.check}: {self.outcome}"
        if self.detail:
            text += f": {self.detail}"
        if self.reproduction:
            text += f"\n{self.reproduction}"
        return text


class Report(Sequence[Verdict]):
    """The verdicts on a primitive."""

    def __init__(self, verdicts: Sequence[Verdict]):
        self._verdicts = tuple(verdicts)

    def __getitem__(self, i: Any) -> Any:
        return self._verdicts[i]

    def __len__(self) -> int:
        return len(self._verdicts)

    def __iter__(self) -> Iterator[Verdict]:
        return iter(self._verdicts)

    @property
    def ok(self) -> bool:
        """True if every check passed, does not apply, or failed as expected."""
        return all(v.ok for v in self._verdicts)

    @property
    def failures(self) -> list[Verdict]:
        """The verdicts that are failures."""
        return [v for v in self._verdicts if not v.ok]

    def raise_for_failures(self) -> None:
        """Raise ``AssertionError`` with all failures, if there are any."""
        if not self.ok:
            raise AssertionError(str(self))

    def __str__(self) -> str:
        counts: dict[str, int] = {}
        for v in self._verdicts:
            counts[v.outcome] = counts.get(v.outcome, 0) + 1
        summary = ", ".join(f"{n} {outcome}" for outcome, n in counts.items()) or "nothing checked"
        return "\n\n".join([summary, *map(str, self.failures)])
