"""Reader of portable modules, run in a separate process because bad input can crash it.

`untrusted` runs it as a script with the folders of jaxlib, NumPy and ml_dtypes as arguments. It
writes ``r`` when it is ready, reads modules from its standard input, each after its length in 8
bytes, and answers with one letter (``y`` or ``n``), the length of a message in 4 bytes, and the
message. It exits when it is idle.
"""

from __future__ import annotations

import os
import struct
import sys
import threading
import time
from typing import Any

IDLE_SECONDS = 5.0
# Memory for reading a module, beyond that of the process: a constant, and a multiple of the size.
MEMORY = 1 << 30, 24


class _Watch:
    """Exits the process after a period without requests."""

    def __init__(self) -> None:
        self.since: float | None = None

    def run(self) -> None:
        while True:
            time.sleep(IDLE_SECONDS / 4)
            since = self.since
            if since is not None and time.monotonic() - since > IDLE_SECONDS:
                os._exit(0)


def _limit_memory(size: int) -> None:
    try:
        import resource

        with open("/proc/self/statm") as file:
            used = int(file.read().split()[0]) * resource.getpagesize()
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        limit = used + MEMORY[0] + MEMORY[1] * size
        if hard != resource.RLIM_INFINITY:
            limit = min(limit, hard)
        resource.setrlimit(resource.RLIMIT_AS, (limit, hard))
    except (ImportError, OSError, ValueError):  # not supported by this system
        pass


def _reader() -> Any:
    """A function that returns the error in a module's bytes, or ``""``."""
    from jaxlib.mlir import ir
    from jaxlib.mlir._mlir_libs import _chlo, _jax_mlir_ext, _stablehlo
    from jaxlib.mlir.dialects import sdy, stablehlo

    context = ir.Context()
    registry = ir.DialectRegistry()
    _jax_mlir_ext.register_dialects(registry)
    context.append_dialect_registry(registry)
    context.enable_multithreading(False)
    context.load_all_available_dialects()
    for dialect in (_stablehlo, _chlo):
        dialect.register_dialect(context)
    sdy.register_dialect(context)
    messages: list[str] = []

    def note(diagnostic: Any) -> bool:
        try:
            messages.append(str(diagnostic.message))
        except Exception:  # not valid text, and an error here would end the process
            messages.append("a name in it is not valid text")
        return True

    context.attach_diagnostic_handler(note)

    def read(data: bytes) -> str:
        messages.clear()
        try:
            module = stablehlo.deserialize_portable_artifact(context, data)
            if not module.operation.verify():
                return "; ".join(messages[:3]) or "it is malformed"
            str(module)
        except Exception as e:
            return "; ".join(messages[:3]) or str(e) or type(e).__name__
        return ""

    return read


def main(folders: list[str]) -> None:
    """Answer requests until the end of the input."""
    sys.path[:0] = folders
    watch = _Watch()
    threading.Thread(target=watch.run, daemon=True).start()
    source, sink = sys.stdin.buffer, sys.stdout.buffer
    read = _reader()
    sink.write(b"r")
    sink.flush()
    while True:
        watch.since = time.monotonic()
        head = source.read(8)
        watch.since = None
        if len(head) < 8:
            return
        (size,) = struct.unpack("<Q", head)
        data = source.read(size)
        if len(data) < size:
            return
        _limit_memory(size)
        problem = read(data).encode()[:2000]
        sink.write((b"n" if problem else b"y") + struct.pack("<I", len(problem)) + problem)
        sink.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
