"""Classes of literals, without instances: literals are ordinary values here."""

import numpy as _np


class LiteralArray(_np.ndarray):
    """The reference's arrays for constants of jaxprs; there are no instances."""


class TypedNdArray(_np.ndarray):
    """The reference's weakly typed arrays for constants; there are no instances."""


class TypedInt(int):
    """The reference's integers with a dtype for constants; there are no instances."""


class TypedFloat(float):
    """The reference's floats with a dtype for constants; there are no instances."""


class TypedComplex(complex):
    """The reference's complex numbers with a dtype for constants; there are no instances."""
