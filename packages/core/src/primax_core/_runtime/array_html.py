"""Arrays in notebooks: the type, the placement and a small table of values.

The elements have no colours, so that they fit light and dark themes of notebooks.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from .._ir import dtypes
from .array_text import NUMPY_AXES, deleted_text

if TYPE_CHECKING:
    from .array import ArrayImpl

EDGE: Final = 4
"""Rows and columns at each edge of a table; an axis of at most twice as many is shown whole."""

MOST_BYTES: Final = 1 << 26
"""Size of an array on an accelerator from which its values are not copied to be shown."""


def array_html(array: ArrayImpl) -> str:
    """The array as HTML: its type, size and devices, and a table if it has one or two axes."""
    aval, sharding = array._spec.aval, array._spec.sharding
    facts = [f"<b>{escape(aval.strip_weak_type().str_short())}</b>"]
    if aval.weak_type:
        facts.append("weakly typed")
    if array.is_deleted():
        return _fragment([*facts, "deleted"], f"<p>{escape(deleted_text(array))}</p>")
    facts.append(_bytes(array.nbytes))
    if len(sharding._devices) == 1:
        facts.append(escape(str(sharding._devices[0])))
    else:
        facts += [f"{len(sharding._devices)} devices", escape(repr(sharding))]
    return _fragment(facts, _values(array))


def _fragment(facts: list[str], body: str) -> str:
    return f"<div><div>{' &middot; '.join(facts)}</div>\n{body}</div>"


def _bytes(number: int) -> str:
    for unit in ("bytes", "KiB", "MiB"):
        if number < 1024:
            return f"{number:.4g} {unit}"
        number /= 1024
    return f"{number:.4g} GiB"


def _values(array: ArrayImpl) -> str:
    """The values, or the reason why they are not shown."""
    aval, sharding = array._spec.aval, array._spec.sharding
    if isinstance(aval.dtype, dtypes.ExtendedDType):
        return _text(aval.dtype.repr_of(array))
    if not (sharding.is_fully_addressable or sharding.is_fully_replicated):
        return "<p>Other processes have a part of the values.</p>"
    if sharding._devices[0].platform != "cpu" and array.nbytes > MOST_BYTES:
        return "<p>The values are not copied from the device, because they are many.</p>"
    if aval.ndim > NUMPY_AXES:
        return ""
    value: np.ndarray[Any, Any] = array._value
    if aval.ndim in (1, 2) and aval.size:
        return _table(value)
    return _text(str(value))


def _text(text: str) -> str:
    return f"<pre>{escape(text)}</pre>"


def _table(value: np.ndarray[Any, Any]) -> str:
    """A table with the indices of rows and columns; the middle of long axes is left out."""
    rows = value[None] if value.ndim == 1 else value
    lines = [
        "<table>",
        f"<tr><th></th>{''.join(f'<th>{c}</th>' for c in _ends(rows.shape[1]))}</tr>",
    ]
    for i in _ends(rows.shape[0]):
        head = "" if value.ndim == 1 else i
        lines.append(
            f"<tr><th>{head}</th>{''.join(_cell(rows, i, j) for j in _ends(rows.shape[1]))}</tr>"
        )
    return "\n".join([*lines, "</table>"])


def _ends(size: int) -> list[int | str]:
    if size <= 2 * EDGE:
        return [*range(size)]
    return [*range(EDGE), "&hellip;", *range(size - EDGE, size)]


def _cell(rows: np.ndarray[Any, Any], i: int | str, j: int | str) -> str:
    if isinstance(i, str) or isinstance(j, str):
        return "<td>&hellip;</td>"
    value = rows[i, j]
    text = f"{value:.6g}" if rows.dtype.kind in "fc" else str(value)
    return f"<td>{escape(text)}</td>"
