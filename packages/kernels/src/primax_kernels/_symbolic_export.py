"""Export of kernels with symbolic shapes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def pallas_export_experimental(dynamic_shapes: bool) -> Iterator[None]:
    """Context in which kernels may be exported with symbolic shapes, where that is supported.

    Args:
      dynamic_shapes: whether shapes of kernels may be symbolic. ``False`` is how it always is.

    Raises:
      NotImplementedError: for ``True``. Blocks, grids and masks of a kernel are computed from the
        sizes of its arrays while it is traced, and a program for a GPU or TPU has fixed ones.

    >>> with pallas_export_experimental(False):
    ...     pass
    """
    if dynamic_shapes:
        raise NotImplementedError(
            "kernels are not exported with symbolic shapes, because their blocks and grids follow "
            "from known sizes: export one program for each of some sizes, pad arrays to the next "
            "one, and pass the number of elements that count, or steps, as a scalar (the grid may "
            "have a computed size)"
        )
    yield
