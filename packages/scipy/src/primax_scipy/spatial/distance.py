"""Distances between the rows of matrices."""

from ._distance import cdist as cdist, pdist as pdist, squareform as squareform
