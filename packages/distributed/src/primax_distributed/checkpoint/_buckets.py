"""Checkpoints in object stores, which cannot rename: a checkpoint is a key that refers to its data.

| Key | Contents |
|---|---|
| ``commits/120``, ``commits/120.1`` | metadata of step 120, and of the one that replaced it |
| ``data/120-…/`` | arrays of one writer |
| ``pending/120-…`` | time of the last change of data that may belong to no checkpoint |

A writer creates the pending key, writes its data, and then the commit, if there is none: this
single write makes the checkpoint. Data without a commit are removed after some time, while the
pending key is replaced on a condition, so that a slow writer fails instead of losing its data.
"""

from __future__ import annotations

import json
import re
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

from ._errors import (
    CheckpointError,
    CheckpointExistsError,
    CheckpointNotFoundError,
    CheckpointWriteError,
    first_line,
)
from ._import import ts
from ._stores import CONTEXT

_COMMIT: Final = re.compile(r"commits/(0|[1-9]\d*)(?:\.([1-9]\d*))?")
_DATA: Final = re.compile(r"data/((?:0|[1-9]\d*)-[0-9a-f]{32})/.*", re.DOTALL)
_PENDING: Final = re.compile(r"pending/((?:0|[1-9]\d*)-[0-9a-f]{32})")
_ABSENT: Final = b"\x02"
"""Generation of a key that does not exist."""
_REMOVING: Final = b"removing"
"""Value of a pending key whose data are removed."""
_REFUSED: Final = b""
"""Generation that a write returns whose condition did not hold."""


@contextmanager
def _errors(url: str, what: str, kind: type[CheckpointError]) -> Iterator[None]:
    try:
        yield
    except (ValueError, OSError, NotImplementedError) as e:
        if isinstance(e, CheckpointError):
            raise
        raise kind(f"{url} cannot be {what}: {first_line(e)}") from e


class Bucket:
    """The checkpoints below an address such as ``gs://bucket/run/``.

    Args:
      url: the address of a key-value store of tensorstore.

    Raises:
      ValueError: if tensorstore has no such store.
    """

    def __init__(self, url: str) -> None:
        url = url if url.endswith("/") else f"{url}/"
        try:
            ts.KvStore.Spec(url)
        except ValueError as e:
            raise ValueError(
                f"{url} is no address of an object store: {first_line(e)}. Pass the path of a "
                "folder, or an address such as gs://bucket/name, s3://bucket/name or file:///name"
            ) from e
        self.url: str = url
        self._opened: Any = None

    def __str__(self) -> str:
        return self.url

    @property
    def _store(self) -> Any:
        if self._opened is None:
            self._opened = ts.KvStore.open(self.url, context=CONTEXT).result()
        return self._opened

    def keys(self, prefix: str = "") -> list[str]:
        """The keys with a prefix.

        Raises:
          CheckpointError: if they cannot be read.
        """
        with _errors(self.url, "read", CheckpointError):
            listed = self._store.list(_below(prefix)).result()
            return [k.decode("utf-8", "surrogateescape") for k in listed]

    def read(self, key: str) -> Any:
        """The value and the generation of a key; the value is ``None`` if there is none.

        Raises:
          CheckpointError: if it cannot be read.
        """
        with _errors(self.url + key, "read", CheckpointError):
            result = self._store.read(key).result()
            value = bytes(result.value) if result.state == "value" else None
            return value, result.stamp.generation

    def write(self, key: str, value: bytes | None, if_equal: bytes | None = None) -> bytes | None:
        """Write or delete a key; return its generation, ``None`` if it has another one than given.

        Raises:
          CheckpointWriteError: if it cannot be written.
        """
        with _errors(self.url + key, "written", CheckpointWriteError):
            generation: bytes = self._store.write(key, value, if_equal=if_equal).result().generation
            return None if generation == _REFUSED else generation

    def delete_below(self, prefix: str) -> None:
        """Delete all keys with a prefix."""
        with _errors(self.url + prefix, "deleted", CheckpointWriteError):
            self._store.delete_range(_below(prefix)).result()

    def foreign(self, step: int) -> list[str]:
        """Keys that do not belong to checkpoints of a step."""
        return [k for k in self.keys() if _step_of(k) != step]

    # Checkpoints

    def folders(self) -> dict[int, BucketFolder]:
        """The complete checkpoints by step, in order.

        Raises:
          CheckpointError: if the store cannot be read.
        """
        newest: dict[int, tuple[int, str]] = {}
        for key in self.keys("commits/"):
            match = _COMMIT.fullmatch(key)
            if match is not None:
                step, version = int(match[1]), int(match[2] or 0)
                newest[step] = max(newest.get(step, (-1, "")), (version, key))
        return {step: BucketFolder(self, newest[step][1]) for step in sorted(newest)}

    def begin(self, step: int) -> str:
        """Create the pending key of a new checkpoint; return the address of its data."""
        name = f"{step}-{uuid.uuid4().hex}"
        self.write(f"pending/{name}", _now())
        return f"{self.url}data/{name}"

    def commit(self, step: int, data: BucketFolder, metadata: bytes, overwrite: bool) -> None:
        """Make written data the checkpoint of a step, by one write.

        Raises:
          CheckpointExistsError: another writer committed the step first.
          CheckpointWriteError: the data were removed, or the store refuses.
        """
        pending = f"pending/{data.data_name}"
        value, generation = self.read(pending)
        fresh = None
        if value not in (None, _REMOVING):
            fresh = self.write(pending, _now(), generation)
        if fresh is None:
            raise _pruned(data)
        before = self.folders().get(step)
        if before is not None and not overwrite:
            raise _exists(self, step)
        version = 0 if before is None else before.version + 1
        key = f"commits/{step}.{version}" if version else f"commits/{step}"
        body = json.dumps({"data": data.data_name, "metadata": metadata.decode()}).encode()
        data.is_kept = True
        if self._write_commit(key, body) is None:
            data.is_kept = False
            raise _exists(self, step)
        is_removed = False
        with suppress(CheckpointWriteError):  # a pending key that stays is removed by `prune`
            is_removed = self.write(pending, None, fresh) is None
        if is_removed:
            self.write(key, None)
            raise _pruned(data)
        if before is not None:
            before.remove()

    def _write_commit(self, key: str, body: bytes) -> bytes | None:
        """Write a commit that does not exist; after an error, look whether it was written."""
        try:
            return self.write(key, body, _ABSENT)
        except CheckpointWriteError:
            value, generation = self.read(key)
            if value != body:
                raise
            return generation

    def remove_remains(self, older_than: float) -> None:
        """Remove replaced checkpoints, and data that a killed writer left some seconds ago."""
        known = self.folders()
        for key in self.keys("commits/"):
            match = _COMMIT.fullmatch(key)
            if match is None or int(match[1]) not in known:
                continue
            folder = BucketFolder(self, key)
            if folder.version < known[int(match[1])].version:
                folder.remove()
        for key in self.keys("pending/"):
            match = _PENDING.fullmatch(key)
            if match is None:
                continue
            value, generation = self.read(key)
            if value is None or time.time() - _time_of(value) <= older_than:
                continue
            used = self._used()
            # The condition fails if the writer has begun to commit meanwhile.
            if match[1] in used:
                self.write(key, None, generation)
            elif (mark := self.write(key, _REMOVING, generation)) is not None:
                self.delete_below(f"data/{match[1]}/")
                self.write(key, None, mark)

    def _used(self) -> set[str]:
        """The names of the data to which commits refer."""
        names = set()
        for key in self.keys("commits/"):
            with suppress(CheckpointNotFoundError):
                names.add(BucketFolder(self, key).data_name)
        return names


def _pruned(data: BucketFolder) -> CheckpointWriteError:
    return CheckpointWriteError(
        f"{data} cannot be committed: `prune` removed the data, because nothing was committed for "
        "its remains_after_seconds. Pass a larger number to prune"
    )


def _exists(bucket: Bucket, step: int) -> CheckpointExistsError:
    return CheckpointExistsError(
        f"another writer committed step {step} in {bucket} first; nothing was replaced"
    )


class BucketFolder:
    """The data of a checkpoint in an object store, complete or not, or a part of them.

    Args:
      key: the key of the commit, ``None`` for data that are not committed.
      data: the path of the data below the address, by default that of the commit.

    Attributes:
      is_kept: a commit may refer to the data, so :meth:`remove` does nothing.
    """

    def __init__(self, bucket: Bucket, key: str | None, data: str | None = None) -> None:
        self.bucket = bucket
        self.key = key
        self._data = data
        self.is_kept: bool = False

    @classmethod
    def at(cls, url: str) -> BucketFolder:
        """The data with the address that :meth:`Bucket.begin` returned."""
        root, _, name = url.rpartition("/data/")
        return cls(Bucket(root), None, f"data/{name}")

    def __str__(self) -> str:
        return self.bucket.url + (self.key or self.data)

    def __truediv__(self, name: str) -> BucketFolder:
        return BucketFolder(self.bucket, None, f"{self.data}/{name}")

    @property
    def data(self) -> str:
        """The path of the data.

        Raises:
          CheckpointNotFoundError: the commit was removed meanwhile.
        """
        if self._data is None:
            self._data = f"data/{self._commit()['data']}"
        return self._data

    @property
    def data_name(self) -> str:
        """The name of the writer's data."""
        return self.data.split("/")[1]

    @property
    def version(self) -> int:
        """The number of times that the step was replaced before."""
        match = _COMMIT.fullmatch(self.key or "")
        return int(match[2] or 0) if match is not None else 0

    @property
    def address(self) -> str:
        """The address of the data, for tensorstore."""
        return f"{self.bucket.url}{self.data}/"

    def is_empty(self) -> bool:
        """Return True if nothing was written."""
        return not self.bucket.keys(f"{self.data}/")

    def metadata(self) -> bytes:
        """The metadata in the commit; damaged ones are empty."""
        text: str = self._commit()["metadata"]
        return text.encode()

    def _commit(self) -> dict[str, str]:
        assert self.key is not None
        value, _ = self.bucket.read(self.key)
        if value is None:
            raise CheckpointNotFoundError(f"{self} was removed by another process")
        try:
            body = json.loads(value)
            if _DATA.fullmatch(f"data/{body['data']}/") and type(body["metadata"]) is str:
                return {"data": body["data"], "metadata": body["metadata"]}
        except (ValueError, KeyError, TypeError):
            pass
        return {"data": "damaged", "metadata": ""}

    def remove(self) -> None:
        """Remove the checkpoint; it is none from the first deletion on."""
        if self.is_kept:
            return
        name = self.data_name
        if self.key is not None:
            self.bucket.write(f"pending/{name}", _now())
            self.bucket.write(self.key, None)
        self.bucket.delete_below(f"data/{name}/")
        self.bucket.write(f"pending/{name}", None)


def _below(prefix: str) -> Any:
    """The range of the keys with a prefix that ends with a slash, or of all."""
    return ts.KvStore.KeyRange(prefix, f"{prefix[:-1]}0" if prefix else "")


def _step_of(key: str) -> int | None:
    for pattern in (_COMMIT, _DATA, _PENDING):
        match = pattern.fullmatch(key)
        if match is not None:
            return int(re.split(r"[-.]", match[1])[0])
    return None


def _now() -> bytes:
    return repr(time.time()).encode()


def _time_of(value: bytes) -> float:
    try:
        return float(value)
    except ValueError:
        return 0.0
