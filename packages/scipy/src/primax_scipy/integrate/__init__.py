"""Integration: of samples, of functions, and of ordinary differential equations."""

from primax_numpy import trapezoid as trapezoid

from ._events import DenseSolution as DenseSolution
from ._quadrature import QuadInfo as QuadInfo
from ._quadrature import fixed_quad as fixed_quad
from ._quadrature import quad as quad
from ._samples import cumulative_simpson as cumulative_simpson
from ._samples import cumulative_trapezoid as cumulative_trapezoid
from ._samples import simpson as simpson
from ._solve_ivp import OdeResult as OdeResult
from ._solve_ivp import solve_ivp as solve_ivp
