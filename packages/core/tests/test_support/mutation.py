"""Random changes of bytes, for fuzzing of file formats.

It imports nothing but the standard library: workers that may crash import it.
"""

from __future__ import annotations

import random

EXTREMES = (0, 1, 2, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)


def mutate(data: bytes, others: list[bytes], rng: random.Random) -> bytes:
    """One to three changes of some bytes."""
    mutated = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        if not mutated:
            break
        at = rng.randrange(len(mutated))
        kind = rng.randrange(7)
        if kind <= 1:
            mutated[at] ^= 1 << rng.randrange(8)
        elif kind == 2:
            mutated[at] = rng.randrange(256)
        elif kind == 3:  # a length or an offset
            size = rng.choice((2, 4, 8))
            at -= at % size
            value = rng.choice((*EXTREMES, len(data), len(data) + 1)) & (256**size - 1)
            mutated[at : at + size] = value.to_bytes(size, "little")
        elif kind == 4:
            end = len(mutated) if rng.random() < 0.3 else at + rng.randrange(1, 9)
            del mutated[at:end]
        elif kind == 5:
            mutated[at:at] = rng.randbytes(rng.randrange(1, 9))
        else:
            other = rng.choice(others)
            start = rng.randrange(len(other))
            piece = other[start : start + rng.randrange(1, 64)]
            mutated[at : at + len(piece)] = piece
    return bytes(mutated)
