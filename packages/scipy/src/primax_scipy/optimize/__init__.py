"""Minimization, roots, least squares, assignment."""

from ._assignment import linear_sum_assignment as linear_sum_assignment
from ._least_squares import LeastSquaresResult as LeastSquaresResult
from ._least_squares import RootResult as RootResult
from ._least_squares import curve_fit as curve_fit
from ._least_squares import least_squares as least_squares
from ._least_squares import root as root
from ._minimize import minimize as minimize
from ._results import OptimizeResults as OptimizeResults
from ._scalar import RootResults as RootResults
from ._scalar import ScalarResult as ScalarResult
from ._scalar import minimize_scalar as minimize_scalar
from ._scalar import root_scalar as root_scalar
