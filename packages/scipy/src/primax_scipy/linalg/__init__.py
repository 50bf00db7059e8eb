"""Linear algebra under SciPy's names.

The last two axes are those of the matrices; leading axes are batch axes. Integers become floats.
"""

from ._banded import cho_solve_banded as cho_solve_banded
from ._banded import cholesky_banded as cholesky_banded
from ._banded import solve_banded as solve_banded
from ._banded import solveh_banded as solveh_banded
from ._decompositions import eigh as eigh
from ._decompositions import eigh_tridiagonal as eigh_tridiagonal
from ._decompositions import hessenberg as hessenberg
from ._decompositions import qr as qr
from ._decompositions import qr_multiply as qr_multiply
from ._decompositions import svd as svd
from ._equations import pinvh as pinvh
from ._equations import solve_continuous_lyapunov as solve_continuous_lyapunov
from ._equations import solve_discrete_lyapunov as solve_discrete_lyapunov
from ._equations import solve_toeplitz as solve_toeplitz
from ._equations import subspace_angles as subspace_angles
from ._matrix_functions import expm as expm
from ._matrix_functions import expm_frechet as expm_frechet
from ._matrix_functions import funm as funm
from ._matrix_functions import polar as polar
from ._matrix_functions import rsf2csf as rsf2csf
from ._matrix_functions import schur as schur
from ._matrix_functions import solve_sylvester as solve_sylvester
from ._matrix_functions import sqrtm as sqrtm
from ._matrix_logarithm import logm as logm
from ._riccati import solve_continuous_are as solve_continuous_are
from ._special_matrices import block_diag as block_diag
from ._special_matrices import circulant as circulant
from ._special_matrices import companion as companion
from ._special_matrices import convolution_matrix as convolution_matrix
from ._special_matrices import dft as dft
from ._special_matrices import fiedler as fiedler
from ._special_matrices import fiedler_companion as fiedler_companion
from ._special_matrices import hadamard as hadamard
from ._special_matrices import hankel as hankel
from ._special_matrices import helmert as helmert
from ._special_matrices import hilbert as hilbert
from ._special_matrices import invhilbert as invhilbert
from ._special_matrices import invpascal as invpascal
from ._special_matrices import leslie as leslie
from ._special_matrices import pascal as pascal
from ._special_matrices import toeplitz as toeplitz
from ._subspaces import null_space as null_space
from ._subspaces import orth as orth
from ._systems import cho_factor as cho_factor
from ._systems import cho_solve as cho_solve
from ._systems import cholesky as cholesky
from ._systems import det as det
from ._systems import inv as inv
from ._systems import lu as lu
from ._systems import lu_factor as lu_factor
from ._systems import lu_solve as lu_solve
from ._systems import solve as solve
from ._systems import solve_triangular as solve_triangular
