"""Reports on what functions compile to and what they cost."""

from ._api.insight.costs import Sum as Sum, Tally as Tally
from ._api.insight.explaining import explain as explain
from ._api.insight.kernels import Kernel as Kernel
from ._api.insight.memory import Held as Held, Peak as Peak
from ._api.insight.phases import Phase as Phase
from ._api.insight.places import Line as Line
from ._api.insight.report import (
    CompiledMemory as CompiledMemory,
    Report as Report,
    Signature as Signature,
)
from ._api.retraces import Change as Change
