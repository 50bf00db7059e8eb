"""Helpers that the test suites of all wheels share: one comparison, one check of derivatives, one
table row.

The package is at the root of the repository, which ``pythonpath`` in ``pyproject.toml`` makes
importable in every run of pytest, also where one built wheel is installed alone. The other two
places do not work:

- ``primax_core.testing`` is public and part of the core, whose size is limited, and ``nox -s
  compat`` runs the newest tests on the oldest core that a wheel accepts, which would lack a new
  helper.
- A folder of tests of one wheel is not part of the source distributions of the others.

The helpers therefore need NumPy, ml_dtypes and the public modules of the core, and neither pytest
nor another wheel. ``tools/vendor.py`` copies the package into the tests of a vendored core; each
source distribution has a copy in ``tests/``.
"""

from .cases import Case as Case
from .cases import case as case
from .cases import fixing as fixing
from .cases import numbered as numbered
from .comparison import assert_close as assert_close
from .comparison import largest as largest
from .comparison import tolerance as tolerance
from .comparison import wide as wide
from .derivatives import check_derivatives as check_derivatives
from .derivatives import numerical_gradient as numerical_gradient
from .transformations import check_batches as check_batches
from .transformations import check_compiled as check_compiled
