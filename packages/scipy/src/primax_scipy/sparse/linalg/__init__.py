"""Matrix-free linear algebra: iterative solvers, least squares, and a few eigenvalues."""

from ._eigsh import eigsh as eigsh
from ._eigsh import svds as svds
from ._expm_multiply import expm_multiply as expm_multiply
from ._least_squares import LSMRResult as LSMRResult
from ._least_squares import LSQRResult as LSQRResult
from ._least_squares import lsmr as lsmr
from ._least_squares import lsqr as lsqr
from ._lobpcg import lobpcg as lobpcg
from ._minres import minres as minres
from ._operators import LinearOperator as LinearOperator
from ._operators import aslinearoperator as aslinearoperator
from ._solvers import bicgstab as bicgstab
from ._solvers import cg as cg
from ._solvers import gmres as gmres
