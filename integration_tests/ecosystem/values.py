"""Comparison of the outputs of two runs of a program."""

from __future__ import annotations

import math
from collections.abc import Iterator


def differences(
    ours: object, theirs: object, rtol: float, atol: float, at: str = ""
) -> Iterator[str]:
    """Describe where two JSON values differ; floats may differ within the tolerances.

    Floats differ if their distance exceeds ``atol + rtol * abs(theirs)``, or if exactly one is NaN.
    All other values (structure, integers, strings, booleans) must be equal.
    """
    if isinstance(ours, dict) and isinstance(theirs, dict) and ours.keys() == theirs.keys():
        for key in ours:
            yield from differences(ours[key], theirs[key], rtol, atol, f"{at}.{key}")
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        for i, (mine, other) in enumerate(zip(ours, theirs)):
            yield from differences(mine, other, rtol, atol, f"{at}[{i}]")
    elif type(ours) is float and type(theirs) is float:
        both_nan = math.isnan(ours) and math.isnan(theirs)
        near = math.isfinite(theirs) and abs(ours - theirs) <= atol + rtol * abs(theirs)
        if not (both_nan or near or ours == theirs):
            yield f"{at or 'the result'}: {ours!r} here, {theirs!r} there"
    elif type(ours) is not type(theirs) or ours != theirs:
        yield f"{at or 'the result'}: {_short(ours)} here, {_short(theirs)} there"


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
