"""Results of measurements, as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from .configs import from_json
from .identity import Identity


@dataclass(frozen=True)
class Record:
    """The fastest configuration of a call.

    Attributes:
      identity: the kernel, call, device and versions.
      config: the configuration.
      seconds: its time, or ``None`` if it was not measured.
    """

    identity: Identity
    config: Mapping[str, Any]
    seconds: float | None = None

    def to_json(self) -> dict[str, Any]:
        """The record as a mapping."""
        return {**asdict(self.identity), "config": dict(self.config), "seconds": self.seconds}


def record_from_json(data: Any) -> Record:
    """The record of a mapping.

    Raises:
      ValueError: if it has other contents.
    """
    if not isinstance(data, Mapping):
        raise ValueError(f"an entry is a mapping, got {data!r}")
    names = ("kernel", "source", "key", "device", "versions")
    for name in names:
        if not isinstance(data.get(name), str):
            raise ValueError(f"an entry has a text {name!r}, got {data.get(name)!r}")
    config, seconds = data.get("config"), data.get("seconds")
    if not isinstance(config, Mapping) or not all(isinstance(n, str) for n in config):
        raise ValueError(f"an entry has a configuration, got {config!r}")
    if not isinstance(seconds, (int, float, type(None))) or isinstance(seconds, bool):
        raise ValueError(f"the seconds of an entry are a number, got {seconds!r}")
    values = {name: from_json(value) for name, value in config.items()}
    return Record(Identity(*(data[name] for name in names)), values, seconds)
