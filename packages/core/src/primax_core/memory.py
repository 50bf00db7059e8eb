"""Kinds of memory."""

from .lax.placement import Space as Space
