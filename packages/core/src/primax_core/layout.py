"""Memory layouts of arrays."""

from ._api.explicit_layouts import explicit_layout as explicit_layout
from ._runtime.layouts import Format as Format, Layout as Layout
from .lax.layout_constraint import with_layout_constraint as with_layout_constraint
