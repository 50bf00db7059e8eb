"""Digests of bytes, for cache keys."""

from __future__ import annotations

from typing import Final

try:  # hashlib imports it from here, but takes 3 ms to load OpenSSL
    from _blake2 import blake2b
except ImportError:
    from hashlib import blake2b

SIZE: Final = 32


def digest(data: bytes | bytearray | memoryview, key: bytes = b"") -> bytes:
    """BLAKE2b digest of 32 bytes; each ``key`` defines a separate hash function.

    >>> digest(b"abc").hex()[:16]
    'bddd813c63423972'
    """
    return blake2b(data, key=key, digest_size=SIZE).digest()
