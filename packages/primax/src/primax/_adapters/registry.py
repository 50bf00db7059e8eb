"""Registry of pytree node classes."""

from __future__ import annotations

from typing import Final

from primax_core.tree_util import is_tree_node


class _Registered:
    """Container: ``cls in registered`` is true if instances of ``cls`` are pytree nodes."""

    def __contains__(self, cls: object) -> bool:
        return isinstance(cls, type) and is_tree_node(cls)


registered: Final = _Registered()
