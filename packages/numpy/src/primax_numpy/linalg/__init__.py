"""Linear algebra: decompositions, linear systems, norms and products of matrices.

The last two axes are those of the matrices; leading axes are batch axes. Integers become floats.
"""

from ._decompositions import cholesky as cholesky
from ._decompositions import eig as eig
from ._decompositions import eigh as eigh
from ._decompositions import eigvals as eigvals
from ._decompositions import eigvalsh as eigvalsh
from ._decompositions import qr as qr
from ._decompositions import svd as svd
from ._decompositions import svdvals as svdvals
from ._determinants import det as det
from ._determinants import slogdet as slogdet
from ._norms import cond as cond
from ._norms import matrix_norm as matrix_norm
from ._norms import matrix_rank as matrix_rank
from ._norms import norm as norm
from ._norms import vector_norm as vector_norm
from ._products import cross as cross
from ._products import diagonal as diagonal
from ._products import matmul as matmul
from ._products import matrix_transpose as matrix_transpose
from ._products import multi_dot as multi_dot
from ._products import outer as outer
from ._products import tensordot as tensordot
from ._products import trace as trace
from ._products import vecdot as vecdot
from ._solving import inv as inv
from ._solving import lstsq as lstsq
from ._solving import matrix_power as matrix_power
from ._solving import pinv as pinv
from ._solving import solve as solve
from ._solving import tensorinv as tensorinv
from ._solving import tensorsolve as tensorsolve
