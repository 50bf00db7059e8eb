"""MLIR: jaxlib's modules."""

from primax.extend.mlir import ir as ir
from primax.extend.mlir import passmanager as passmanager
