"""Keys of jitted calls with static or keyword arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._base import pytree


class CallKeys:
    """Keys of calls with static or keyword arguments, for one number and choice of arguments.

    ``key(options_key, (*args, *kwargs.values()))`` is the key of a call, with the type of each
    static value, and the arrays in the order of the executable: keyword arguments sorted by name.
    """

    __slots__ = ("key", "shape", "static", "others")

    def __init__(
        self, static_argnums: Sequence[int], static_argnames: Sequence[str], n: int,
        kwargs: dict[str, Any],
    ):  # fmt: skip
        names = list(kwargs)
        at = {i if i >= 0 else i + n for i in static_argnums if i < n}
        at |= {n + i for i, name in enumerate(names) if name in static_argnames}
        order = [*range(n), *[n + names.index(name) for name in sorted(names)]]
        self.static = [i for i in order if i in at]
        self.others = [i for i in order if i not in at]
        # Generated, because a loop over the positions takes three times as long.
        parts = [f"v[{i}], type(v[{i}]), " for i in self.static]
        parts += [f"v[{i}]._spec, " for i in self.others]
        arrays = ", ".join([f"v[{i}]" for i in self.others])
        text = f"lambda k, v: ((k, shape, {''.join(parts)}), [{arrays}])"
        self.shape = object()
        self.key = eval(text, {"shape": self.shape})

    def flatten(self, options_key: Any, values: tuple) -> tuple[tuple, list]:
        """``key`` of calls with pytrees of arrays."""
        static = [values[i] for i in self.static]
        leaves, tree = pytree.tree_flatten([values[i] for i in self.others])
        types = map(type, static)
        return (options_key, self.shape, tree, *static, *types, *[a._spec for a in leaves]), leaves
