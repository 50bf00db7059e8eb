"""Reasons for retraces: the differences between signatures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from .._base import log
from .._base.config import changed_options
from .._engine.jit_cache import JitCache

_PROPERTIES = ("shape", "dtype", "weak_type", "sharding")


class Change(NamedTuple):
    """One property in which a signature differs from an earlier one.

    Attributes:
      what: the argument, by its path (``params['w']``), or the option.
      property: ``shape``, ``dtype``, ``weak type``, ``sharding``, ``structure``, ``static value``
        or ``configuration``.
      before, now: its values, as text.
    """

    what: str
    property: str
    before: str
    now: str

    def __str__(self) -> str:
        new = f"a new {self.property}" if self.property != "configuration" else "a new value"
        return f"{self.what}: {new}, {self.now}, previously {self.before}"


def changes(cache: JitCache, key: tuple, known: Sequence[tuple]) -> list[Change]:
    """Differences between a signature and the closest one in ``known``; none if ``known`` is empty.

    Keys are ``(configuration, axes, static values, structure, *types)``.
    """
    if not known:
        return []
    closest = min(reversed(known), key=lambda k: _distance(k, key))
    differences = _configuration(closest, key)
    differences += _static(closest, key)
    if closest[3] != key[3]:
        differences.append(Change("the arguments", "structure", str(closest[3]), str(key[3])))
    else:
        for i, (a, b) in enumerate(zip(closest[4:], key[4:])):
            if a is not b:
                differences += _types(cache.argument_name(i, key[3], key[2]), a, b)
    return differences


def _distance(a: tuple, b: tuple) -> tuple:
    differing = sum(
        x is not y and sum(getattr(x, p, None) != getattr(y, p, None) for p in _PROPERTIES)
        for x, y in zip(a[4:], b[4:])
    )
    return (a[3] != b[3], a[2] != b[2], a[0] is not b[0], a[1] != b[1], differing)


def _configuration(a: tuple, b: tuple) -> list[Change]:
    differences = []
    if a[0] is not b[0]:
        for name, before, now in changed_options(a[0], b[0]):
            differences.append(Change(f"option {name}", "configuration", repr(before), repr(now)))
        differences = differences or [
            Change("rules", "configuration", "the earlier ones", "replaced")
        ]
    if a[1] != b[1]:
        differences.append(Change("the named axes in scope", "configuration", str(a[1]), str(b[1])))
    return differences


def _static(a: tuple, b: tuple) -> list[Change]:
    if a[2] == b[2]:
        return []
    before, now = _named(a[2]), _named(b[2])
    return [
        Change(name, "static value", before.get(name, "absent"), now.get(name, "absent"))
        for name in {**before, **now}
        if before.get(name) != now.get(name)
    ]


def _named(static_key: Any) -> dict[str, str]:
    if static_key is None:
        return {}
    named = {f"static argument {i}": repr(v) for i, _, v in static_key[0]}
    named.update((f"static argument {k!r}", repr(v)) for k, _, v in static_key[1])
    return named


def _types(name: str, a: Any, b: Any) -> list[Change]:
    differences = []
    for p in _PROPERTIES:
        before, now = getattr(a, p, None), getattr(b, p, None)
        if before != now:
            differences.append(Change(name, p.replace("_", " "), str(before), str(now)))
    return differences or [Change(name, "type", str(a), str(b))]


def explain_miss(cache: JitCache, key: tuple, avals: Sequence) -> None:
    """Log the reason why a function is traced, for ``explain_cache_misses``."""
    head = f"TRACING CACHE MISS for {cache.name}"
    if not cache.traced:
        reason = "it was never traced before (or its function object is new)"
    else:
        differences = changes(cache, key, list(cache.traced))
        reason = "; ".join(map(str, differences)) or "its cache entry was dropped"
    log.warning("%s because %s", head, reason)
