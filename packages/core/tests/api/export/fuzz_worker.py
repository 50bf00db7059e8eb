"""Worker that passes mutated files to the loaders: ``python fuzz_worker.py folder first count``.

The folder has the original files and, in the file ``at``, the number of the current mutation.
Mutation ``n`` is the same in every run.
"""

from __future__ import annotations

import collections
import pickle
import random
import struct
import sys
import warnings
from pathlib import Path

import primax_core as pc
from primax_core import serialize_executable
from primax_core._base.digest import digest
from primax_core._lower import compile as lowering
from primax_core._runtime import saved_executables
from primax_core._runtime.disk import executables as disk
from primax_core.errors import InvalidArtifactError
from test_support.mutation import mutate


class Loaders:
    """Loaders of mutated files; each method takes a mutation number and appends to ``faults``."""

    def __init__(self, folder: Path):
        with open(folder / "corpus", "rb") as file:
            self.corpus = pickle.load(file)
        self.counts: collections.Counter[str] = collections.Counter()
        self.faults: list[str] = []
        self.cache = folder / "cache"
        self.devs = (pc.devices()[0],)
        self.options = lowering.make_options(self.devs)

    def attempt(self, n: int) -> None:
        """Try one mutation."""
        rng = random.Random(n)
        # Out of three mutations: one executable, two files of the cache.
        if n % 3 == 0:
            self.executable(n, rng)
        else:
            self.cached(n, rng, link=n % 3 == 2)

    def executable(self, n: int, rng: random.Random) -> None:
        """Try a compiled function. Its machine code changes only with a wrong checksum."""
        data, in_tree, out_tree, args = rng.choice(self.corpus["executables"])
        if rng.random() < 0.5:
            about, blob, constants = _parts(data)
            about = mutate(about, [data], rng)
            body = struct.pack("<QQQ", len(about), len(blob), len(constants))
            body += about + blob + constants
            data = data[:8] + digest(body) + body
        else:
            data = mutate(data, [data], rng)
        try:
            loaded = serialize_executable.deserialize_and_load(data, in_tree, out_tree)
        except InvalidArtifactError:
            self.counts["executable refused"] += 1
            return
        except Exception as e:
            self.faults.append(f"{n}: deserialize_and_load raised {type(e).__name__}: {e}")
            return
        self.counts["executable loaded"] += 1
        try:
            loaded(*args)
        except Exception as e:
            self.counts[f"executable call: {type(e).__name__}"] += 1

    def cached(self, n: int, rng: random.Random, link: bool) -> None:
        """Try a file of the cache of executables."""
        key, data, suffix = self.corpus["links" if link else "cached"][0]
        place = disk.FileLocation(str(self.cache), key)
        path = self.cache / (key.hex() + suffix)
        path.write_bytes(mutate(data, [data], rng))
        path.chmod(0o600)
        try:
            outcome = disk.link(place) if link else disk.fetch(place, self.devs, self.options)
        except Exception as e:
            self.faults.append(f"{n}: the cache raised {type(e).__name__}: {e}")
            return
        self.counts["cached loaded" if outcome is not None else "cached refused"] += 1


def _parts(data: bytes) -> tuple[bytes, bytes, bytes]:
    start = saved_executables._BODY + saved_executables._HEAD.size
    sizes = struct.unpack_from("<QQQ", data, saved_executables._BODY)
    first, second = start + sizes[0], start + sizes[0] + sizes[1]
    return data[start:first], data[first:second], data[second:]


def main(folder: Path, first: int, count: int) -> None:
    """Try mutations; the number of each is recorded before."""
    warnings.simplefilter("ignore")
    import logging

    logging.disable(logging.CRITICAL)
    loaders = Loaders(folder)
    with open(folder / "at", "r+b", buffering=0) as at:
        for n in range(first, first + count):
            at.seek(0)
            at.write(b"%12d" % n)
            loaders.attempt(n)
    for fault in loaders.faults[:20]:
        print("FAULT", fault[:500].replace("\n", " "))
    print(dict(loaders.counts))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
