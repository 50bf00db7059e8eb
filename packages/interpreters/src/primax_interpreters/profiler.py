"""Profiles of the host and the devices, and of their memory."""

from ._profiler.annotations import (
    StepTraceAnnotation as StepTraceAnnotation,
    TraceAnnotation as TraceAnnotation,
    annotate_function as annotate_function,
)
from ._profiler.data import ProfileData as ProfileData
from ._profiler.native import (
    ProfileEvent as ProfileEvent,
    ProfileLine as ProfileLine,
    ProfileOptions as ProfileOptions,
    ProfilePlane as ProfilePlane,
)
from ._profiler.serving import (
    device_memory_profile as device_memory_profile,
    register_subprocess as register_subprocess,
    save_device_memory_profile as save_device_memory_profile,
    start_server as start_server,
    stop_server as stop_server,
)
from ._profiler.sessions import (
    ProfileSession as ProfileSession,
    export_profile_data as export_profile_data,
    start_trace as start_trace,
    stop_trace as stop_trace,
    trace as trace,
)
