"""References for interpreters and kernels: their primitives, indices and views.

The rules of primitives and the language of indices are those of the core's own references. An
index of ``ref[...]`` is parsed into a hashable value and operands, which are the parameter
``index`` and the last operands of ``get``, ``swap`` and ``addupdate``.
"""

from .._trace.refs import get_p as get_p, new_ref_p as new_ref_p, swap_p as swap_p
from ..lax.references import loaded as _loaded  # noqa: F401  (installs them)
from ..lax.references.access import RefIndexer as RefIndexer, RefView as RefView
from ..lax.references.composition import compose_indices as compose_indices
from ..lax.references.indexing import (
    INTEGER as INTEGER,
    INTEGER_ARRAY as INTEGER_ARRAY,
    DynamicSlice as DynamicSlice,
    StaticSlice as StaticSlice,
    parse_index as parse_index,
    selected_shape as selected_shape,
)
from ..lax.references.parts import add_at as add_at, read_at as read_at, write_at as write_at
from ..lax.references.primitives import (
    addupdate_p as addupdate_p,
    empty_ref_p as empty_ref_p,
    free_ref_p as free_ref_p,
    freeze_p as freeze_p,
)
