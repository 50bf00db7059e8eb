"""Helpers that the test suites of all wheels share: one comparison, one check of derivatives, one
table row.

The package is among the tests of the core, because a vendored copy of the core is tested by a copy
of them. ``pythonpath`` in the root ``pyproject.toml`` makes it importable in every run of pytest,
also where one built wheel is installed alone; the source distributions of the other wheels have a
copy in ``tests/``. It is not part of ``primax_core.testing``: that is public, the size of the core
is limited, and ``nox -s compat`` runs the newest tests on the oldest core that a wheel accepts,
which would lack a new helper.

The helpers need NumPy and the public modules of the core, and neither pytest nor another wheel.
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
from .installation import wait_until_settled as wait_until_settled
from .settings import SETTINGS as SETTINGS
from .settings import check_call as check_call
from .settings import check_settings as check_settings
from .transformations import check_batches as check_batches
from .transformations import check_compiled as check_compiled
