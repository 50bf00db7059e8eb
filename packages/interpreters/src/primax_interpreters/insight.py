"""Reports on what functions compile to and what they cost."""

from primax_core.extend.runtime import Change as Change, Signature as Signature

from ._insight.collectives import Collective as Collective, Traffic as Traffic
from ._insight.costs import Sum as Sum, Tally as Tally
from ._insight.explaining import explain as explain
from ._insight.kernels import Kernel as Kernel
from ._insight.memory import Held as Held, Peak as Peak
from ._insight.phases import Phase as Phase
from ._insight.places import Line as Line
from ._insight.report import (
    CompiledMemory as CompiledMemory,
    Report as Report,
)
