"""Types and effects of references."""

from primax_core.extend import (
    AbstractRef as AbstractRef,
    AccumEffect as AccumEffect,
    ReadEffect as ReadEffect,
    RefEffect as RefEffect,
    WriteEffect as WriteEffect,
)
