"""Tables of configurations, which ship with a package."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from primax_core.extend.runtime import new_lock

from .records import Record, record_from_json
from .store import replace_text

_FORMAT: Final = "primax kernel configurations"
_VERSION: Final = 1

_lock: Final = new_lock()
_loaded: Final[dict[tuple[str, str, str], Record]] = {}
_generations = itertools.count(1)
_generation = 0


def look_up(kernel: str, key: str, device: str) -> Record | None:
    """The entry of the loaded tables for a call."""
    return _loaded.get((kernel, key, device))


def generation() -> int:
    """A number that changes when tables are loaded or forgotten."""
    return _generation


def _changed() -> None:
    global _generation
    _generation = next(_generations)


def load_table(table: str | os.PathLike[str] | Mapping[str, Any]) -> int:
    """Use the configurations of a table for calls of functions of `autotune`.

    An entry applies to a kernel, the shapes and dtypes of a call, and a kind of device, whatever
    the versions of packages are. Entries replace those of tables that were loaded before. Loaded
    entries are preferred to stored results.

    Args:
      table: the path of a file that `export_table` wrote, or its contents.

    Returns:
      The number of entries.

    Raises:
      FileNotFoundError: if there is no such file.
      ValueError: if it is not such a table. None of its entries is used then.

    >>> entry = {
    ...     "kernel": "acme.softmax",
    ...     "source": "",
    ...     "key": "float32[64,64]",
    ...     "seconds": None,
    ...     "device": "NVIDIA H100",
    ...     "versions": "",
    ...     "config": {"rows": 4},
    ... }
    >>> load_table({"format": "primax kernel configurations", "version": 1, "entries": [entry]})
    1
    """
    records = _records(table)
    with _lock:
        for r in records:
            _loaded[r.identity.kernel, r.identity.key, r.identity.device] = r
        _changed()
    return len(records)


def unload_tables() -> None:
    """Forget the entries of all loaded tables."""
    with _lock:
        _loaded.clear()
        _changed()


def _records(table: Any) -> list[Record]:
    name = "the table" if isinstance(table, Mapping) else os.fspath(table)
    data: Any = table
    if not isinstance(table, Mapping):
        try:
            data = json.loads(Path(table).read_bytes())
        except ValueError as error:
            raise ValueError(f"{name} is not a table of configurations: {error}") from None
    if not isinstance(data, Mapping) or data.get("format") != _FORMAT:
        raise ValueError(f"{name} is not a table of configurations, which export_table writes")
    if data.get("version") != _VERSION:
        raise ValueError(
            f"{name} has version {data.get('version')!r} of the format, this package reads version "
            f"{_VERSION}"
        )
    entries = data.get("entries")
    if not isinstance(entries, (list, tuple)):
        raise ValueError(f"{name} has no entries")
    try:
        return [record_from_json(e) for e in entries]
    except ValueError as error:
        raise ValueError(f"{name} has a wrong entry: {error}") from None


def write_table(path: str | os.PathLike[str], records: Iterable[Record]) -> int:
    """Write records into a table, beside the entries for other calls and devices that it has.

    Raises:
      ValueError: if there is a file of other contents.
    """
    path = Path(path)
    merged = {_key(r): r for r in (_records(path) if path.exists() else [])}
    merged.update({_key(r): r for r in records})
    entries = [json.dumps(merged[key].to_json()) for key in sorted(merged)]
    lines = ",\n".join(f"  {e}" for e in entries)
    body = f"\n{lines}\n " if lines else ""
    text = f'{{\n "format": "{_FORMAT}",\n "version": {_VERSION},\n "entries": [{body}]\n}}\n'
    replace_text(path.absolute(), text)
    return len(merged)


def _key(record: Record) -> tuple[str, str, str]:
    return record.identity.kernel, record.identity.device, record.identity.key
