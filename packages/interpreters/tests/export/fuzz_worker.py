"""Worker that passes mutated artifacts to the loader: ``python fuzz_worker.py folder first count``.

The folder has the original artifacts and, in the file ``at``, the number of the current mutation.
Mutation ``n`` is the same in every run.
"""

from __future__ import annotations

import collections
import pickle
import random
import sys
import warnings
from pathlib import Path

from primax_core.errors import InvalidArtifactError
from primax_interpreters import export
from primax_interpreters._export import envelope
from test_support.mutation import mutate


class Loader:
    """The loader of mutated artifacts; failures are appended to ``faults``."""

    def __init__(self, folder: Path):
        with open(folder / "corpus", "rb") as file:
            self.files = pickle.load(file)
        self.counts: collections.Counter[str] = collections.Counter()
        self.faults: list[str] = []

    def attempt(self, n: int) -> None:
        """Try one mutation."""
        rng = random.Random(n)
        data, args = rng.choice(self.files)
        others = [d for d, _ in self.files]
        if n % 7 < 4:  # with a correct checksum
            body = data[envelope._BODY :]
            module = body.find(b"ML\xefR")
            if rng.random() < 0.6:  # only the module, of unchanged length
                changed = mutate(body[module:], others, rng)[: len(body) - module]
                body = (body[:module] + changed).ljust(len(body), b"\0")
            else:
                body = mutate(body, others, rng)
            data = envelope.seal(body, 1, rng.randrange(3))
        else:
            data = mutate(data, others, rng)
        try:
            exported = export.deserialize(data)
        except InvalidArtifactError as e:
            self.counts[str(e).split(":")[0][:60]] += 1
            return
        except Exception as e:
            self.faults.append(f"{n}: deserialize raised {type(e).__name__}: {e}")
            return
        self.counts["accepted"] += 1
        try:
            exported.call(*args)
            self.counts["called"] += 1
            if exported.has_vjp():
                exported.vjp()
        except Exception as e:
            self.counts[f"call: {type(e).__name__}"] += 1


def main(folder: Path, first: int, count: int) -> None:
    """Try mutations; the number of each is recorded before."""
    warnings.simplefilter("ignore")
    import logging

    logging.disable(logging.CRITICAL)
    loader = Loader(folder)
    with open(folder / "at", "r+b", buffering=0) as at:
        for n in range(first, first + count):
            at.seek(0)
            at.write(b"%12d" % n)
            loader.attempt(n)
    for fault in loader.faults[:20]:
        print("FAULT", fault[:500].replace("\n", " "))
    print(dict(loader.counts))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
