"""The classes that are nodes of pytrees, as a collection."""

from __future__ import annotations

from typing import Final

from primax_core.tree_util import is_tree_node


class _Registered:
    """``cls in registered`` tells whether values of a class are nodes, not leaves."""

    def __contains__(self, cls: object) -> bool:
        return isinstance(cls, type) and is_tree_node(cls)


registered: Final = _Registered()
