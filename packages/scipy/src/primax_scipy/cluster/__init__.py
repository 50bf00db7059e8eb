"""Clustering."""

from . import vq as vq
