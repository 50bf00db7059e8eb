"""Interpolation: splines, grids, piecewise polynomials. The interpolants are pytrees."""

from ._bsplines import BSpline as BSpline
from ._bsplines import make_interp_spline as make_interp_spline
from ._cubic import Akima1DInterpolator as Akima1DInterpolator
from ._cubic import CubicHermiteSpline as CubicHermiteSpline
from ._cubic import CubicSpline as CubicSpline
from ._cubic import PchipInterpolator as PchipInterpolator
from ._grids import RegularGridInterpolator as RegularGridInterpolator
from ._grids import interpn as interpn
from ._one_dimensional import interp1d as interp1d
from ._piecewise import PPoly as PPoly
