"""Compiled functions as bytes, for other processes on machines of the same type."""

from ._api.saved_executables import (
    deserialize_and_load as deserialize_and_load,
    serialize as serialize,
)
