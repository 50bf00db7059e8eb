"""Digests of bytes, for keys of caches."""

from __future__ import annotations

from typing import Final

try:  # where the standard module has it from, without the 3 ms in which that loads OpenSSL
    from _blake2 import blake2b
except ImportError:
    from hashlib import blake2b

SIZE: Final = 32


def digest(data: bytes | bytearray | memoryview, key: bytes = b"") -> bytes:
    """BLAKE2b of some bytes, as 32 bytes; ``key`` gives each use its own function.

    >>> digest(b"abc").hex()[:16]
    'bddd813c63423972'
    """
    return blake2b(data, key=key, digest_size=SIZE).digest()
