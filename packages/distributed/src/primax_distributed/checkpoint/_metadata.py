"""The metadata of a checkpoint: one JSON file with a checksum."""

from __future__ import annotations

import json
import zlib
from pathlib import Path
from typing import Any, Final

from ._errors import CheckpointDamagedError, CheckpointError
from ._folders import METADATA, Folder

_FORMAT: Final = "primax-checkpoint"
_VERSION: Final = 1


def to_bytes(step: int, num_processes: int, structure: Any, records: list[dict[str, Any]]) -> bytes:
    """The contents of the metadata file."""
    contents = json.dumps({
        "step": step, "num_processes": num_processes, "structure": structure, "leaves": records
    })  # fmt: skip
    checksum = zlib.crc32(contents.encode())
    return json.dumps(
        {"format": _FORMAT, "version": _VERSION, "checksum": checksum, "contents": contents}
    ).encode()


def read(folder: Folder) -> dict[str, Any]:
    """The step, the structure and the records of the leaves.

    Raises:
      CheckpointDamagedError: the file is truncated or changed, or of a newer version.
      CheckpointError: it cannot be read.
    """
    try:
        data = json.loads(_contents(folder))
        contents = data["contents"].encode()
        if data["format"] != _FORMAT:
            raise KeyError("format")
        version = int(data["version"])
        intact = zlib.crc32(contents) == data["checksum"]
    except CheckpointError:
        raise
    except OSError as e:
        raise CheckpointError(f"{folder / METADATA} cannot be read: {e.strerror}") from e
    except (ValueError, KeyError, TypeError, AttributeError) as e:
        raise CheckpointDamagedError(
            f"the checkpoint in {folder} is damaged: {METADATA} is truncated or changed"
        ) from e
    if version > _VERSION:
        raise CheckpointError(
            f"the checkpoint in {folder} has version {version} of the format, but this version of "
            f"primax-distributed reads up to {_VERSION}: update it"
        )
    if not intact:
        raise CheckpointDamagedError(
            f"the checkpoint in {folder} is damaged: the checksum of {METADATA} is wrong"
        )
    result: dict[str, Any] = json.loads(contents)
    return result


def _contents(folder: Folder) -> bytes:
    return (folder / METADATA).read_bytes() if isinstance(folder, Path) else folder.metadata()
