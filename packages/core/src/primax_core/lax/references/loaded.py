"""Implementation of :class:`References`, which other layers call once references exist."""

from __future__ import annotations

from typing import Any, Final

from ..._engine import discharge, ref_calls, ref_transforms
from ..._runtime.array import copy_array
from ..._trace import refs
from ..._trace.reference_ops import install_references
from ..control.discharging import batch_discharged
from . import access


class _LoadedReferences:
    """The operations on references, implemented by this package and the layers below."""

    loaded: Final = True

    check_aliases = staticmethod(refs.check_aliases)
    refuse_returned = staticmethod(refs.refuse_returned)
    check_returned = staticmethod(refs.check_returned)
    read_whole = staticmethod(refs.read_whole)
    write_whole = staticmethod(refs.write_whole)

    get = staticmethod(access.get)
    set = staticmethod(access.set)
    addupdate = staticmethod(access.addupdate)
    copy = staticmethod(copy_array)

    process = staticmethod(ref_transforms.process_discharged)
    call = staticmethod(ref_transforms.call_discharged)
    has_cells = staticmethod(ref_transforms.holds_cells)
    lend = staticmethod(ref_transforms.lend)
    batch = staticmethod(batch_discharged)

    without_local_refs = staticmethod(discharge.without_local_refs)
    for_lowering = staticmethod(discharge.for_lowering)

    plan = staticmethod(ref_calls.plan_of)
    run = staticmethod(ref_calls.run)
    run_eagerly = staticmethod(ref_calls.run_eagerly)
    evaluate = staticmethod(ref_calls.evaluate)

    def indexer(self, ref: Any) -> Any:
        """``ref.at``."""
        return access.RefIndexer(ref)

    def cell(self, trace: Any, aval: Any, value: Any) -> Any:
        """A reference created under a transformation, with these contents."""
        return refs.RefCell(trace, aval, value)


install_references(_LoadedReferences())
