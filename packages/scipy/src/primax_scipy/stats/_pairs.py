"""Results that unpack to their first values, and have more attributes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from primax_core import tree_util


class _Pair:
    """A pytree of attributes, which unpacks to the first of them."""

    _fields: tuple[str, ...] = ("statistic", "pvalue")
    _unpacked: int = 2

    def __init__(self, *values: Any) -> None:
        for name, value in zip(self._fields, values, strict=True):
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{type(self).__name__}.{name} cannot be set: results are constant.")

    def __iter__(self) -> Iterator[Any]:
        return iter(self._first())

    def __len__(self) -> int:
        return self._unpacked

    def __getitem__(self, index: int) -> Any:
        return self._first()[index]

    def _first(self) -> tuple[Any, ...]:
        return tuple(getattr(self, n) for n in self._fields[: self._unpacked])

    def __repr__(self) -> str:
        parts = ", ".join(f"{n}={getattr(self, n)!r}" for n in self._fields)
        return f"{type(self).__name__}({parts})"

    def tree_flatten(self) -> tuple[tuple[Any, ...], None]:
        """The attributes, and nothing else."""
        return tuple(getattr(self, n) for n in self._fields), None

    @classmethod
    def tree_unflatten(cls, _: None, values: Any) -> Any:
        """The result with these attributes."""
        return cls(*values)


@tree_util.register_pytree_node_class
class TtestResult(_Pair):
    """Result of a t-test; it unpacks to the statistic and the p-value.

    Attributes:
      statistic: the t statistic.
      pvalue: its p-value.
      df: degrees of freedom.
    """

    _fields = ("statistic", "pvalue", "df")
    statistic: Any
    pvalue: Any
    df: Any


@tree_util.register_pytree_node_class
class KstestResult(_Pair):
    """Result of a Kolmogorov-Smirnov test; it unpacks to the statistic and the p-value.

    Attributes:
      statistic: the largest distance of the distribution functions.
      pvalue: its p-value.
      statistic_location: the element of the sample at which the distance is largest.
      statistic_sign: 1 if the empirical distribution function is above the other one there, or -1.
    """

    _fields = ("statistic", "pvalue", "statistic_location", "statistic_sign")
    statistic: Any
    pvalue: Any
    statistic_location: Any
    statistic_sign: Any
