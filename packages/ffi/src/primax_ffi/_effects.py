"""Effects of calls of native functions and of callbacks."""

from __future__ import annotations

from typing import Final

from primax_core.extend import NamedEffect


class NativeEffect(NamedEffect):
    """A function with side effects is called."""

    name = "Native"
    keeps = True


class OrderedNativeEffect(NativeEffect):
    """A function with side effects is called, in program order."""

    name = "OrderedNative"
    ordered = True


_EFFECT: Final = frozenset([NativeEffect()])
_ORDERED: Final = frozenset([OrderedNativeEffect()])


def effects_of(has_side_effect: bool, ordered: bool = False) -> frozenset[NativeEffect]:
    """The effects of a call."""
    return _ORDERED if ordered else _EFFECT if has_side_effect else frozenset()
