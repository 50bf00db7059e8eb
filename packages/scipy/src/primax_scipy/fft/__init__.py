"""Discrete cosine transforms."""

from ._cosine import dct as dct
from ._cosine import dctn as dctn
from ._cosine import idct as idct
from ._cosine import idctn as idctn
