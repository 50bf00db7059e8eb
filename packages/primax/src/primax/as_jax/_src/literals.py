"""Classes of literals: here, literals are ordinary values."""

import numpy as _np


class LiteralArray(_np.ndarray):
    """Arrays that the reference makes for constants of programs; here there are none."""


class TypedNdArray(_np.ndarray):
    """Arrays with a weak type that the reference makes for constants; here there are none."""


class TypedInt(int):
    """Integers with a dtype that the reference makes for constants; here there are none."""


class TypedFloat(float):
    """Floats with a dtype that the reference makes for constants; here there are none."""


class TypedComplex(complex):
    """Complex numbers with a dtype that the reference makes for constants; here there are none."""
