"""Mutated files of the cache of executables, and other things in their place."""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path

import numpy as np

import primax_core as pc
from primax_core import lax
from primax_core._base.digest import digest
from primax_core._lower import compile as compiling
from primax_core._runtime.disk import files, writer
from test_support.mutation import mutate


class Fuzzer:
    """A small program is run from a cache whose files were changed."""

    def __init__(self, folder: Path, seed: int):
        self.seed, self.cache = seed, folder / "programs"
        shutil.rmtree(self.cache, ignore_errors=True)
        self.x = pc.device_put(np.arange(6, dtype=np.float32).reshape(2, 3))
        self.compute()
        writer.finish()
        self.original = {p.name: p.read_bytes() for p in self.cache.iterdir()}
        assert len({Path(n).suffix for n in self.original}) == 2, sorted(self.original)

    def compute(self) -> list[float]:
        """The program's result, without executables of this process."""
        pc.clear_caches()
        compiling._loaded.clear()
        return pc.jit(lambda x: lax.reduce_sum(lax.sin(x) * 2, (1,)))(self.x).tolist()

    def attempt(self, n: int) -> str | None:
        """Change one file and run the program."""
        rng = random.Random(f"cache {self.seed} {n}")
        for path in self.cache.iterdir():
            path.unlink()
        for name, data in self.original.items():
            path = self.cache / name
            path.write_bytes(data)
            path.chmod(0o600)
        victim = self.cache / rng.choice(sorted(self.original))
        what = self.change(victim, rng)
        try:
            result = self.compute()
        except Exception as e:
            return f"{what} of {victim.suffix}: {type(e).__name__}: {e}"
        writer.finish()
        expected = (2 * np.sin(np.asarray(self.x)).sum(1)).tolist()
        if np.allclose(result, expected, rtol=1e-5):
            return None
        return f"{what} of {victim.suffix}: {result}, expected {expected}"

    def change(self, path: Path, rng: random.Random) -> str:
        """Change a file; return a description."""
        data = path.read_bytes()
        kind = rng.randrange(8)
        if kind == 0:
            os.truncate(path, rng.choice((0, 1, 47, 1 << 20, 1 << 40)))
            return "another size"
        if kind == 1:
            path.unlink()
            os.mkfifo(path, 0o600)
            return "a pipe in place"
        if kind == 2:
            at = rng.choice((0.0, 2.0**40, -1.0, 2.0**32))
            os.utime(path, (at, at))
            return "another time"
        if kind == 3:  # a correct checksum
            key = bytes.fromhex(path.stem)
            body = mutate(data[40:], list(self.original.values()), rng)
            if path.suffix == ".xla":
                about, packed, plain = files._HEAD.unpack_from(data, 40)
                sizes = [rng.choice((v, v, v + 1, 0, 1 << 40)) for v in (packed, plain)]
                if sizes == [packed, plain]:
                    sizes[0] += 1  # jaxlib trusts an executable with a correct checksum
                rest = data[40 + files._HEAD.size :]
                body = files._HEAD.pack(about, *sizes) + rest
            path.write_bytes(data[:8] + digest(body, key) + body)
            return "changed lengths"
        path.write_bytes(mutate(data, list(self.original.values()), rng))
        return "changed bytes"
