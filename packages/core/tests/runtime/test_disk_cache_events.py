"""Events of the cache on disk."""

from __future__ import annotations

from disk_processes import process

PROGRAM = """
from primax_core import monitoring
told = []
monitoring.register_event_listener(lambda e, **k: told.append(e))
monitoring.register_event_duration_secs_listener(lambda e, d, **k: told.append(e))
px.jit(lambda x: lax.cos(x))(np.ones(3, np.float32))
report(told)
"""
CORE, CACHE = "/jax/core/compile/", "/jax/compilation_cache/"
TRACE = CORE + "jaxpr_trace_duration"
LOWER = CORE + "jaxpr_to_mlir_module_duration"
COMPILE = CORE + "backend_compile_duration"


def test_hits_and_misses(tmp_path):
    first, second = (process(tmp_path, PROGRAM).values[0] for _ in range(2))
    asked = CACHE + "compile_requests_use_cache"
    assert first == [TRACE, LOWER, asked, CACHE + "cache_misses", COMPILE]
    hit = [CACHE + "cache_hits", CACHE + "cache_retrieval_time_sec"]
    assert second == [TRACE, asked, *hit, COMPILE]
