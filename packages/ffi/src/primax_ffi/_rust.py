"""Bindings for handlers in Rust."""

from __future__ import annotations

from pathlib import Path


def rust_bindings() -> Path:
    """Path of ``primax_ffi.rs``, the bindings for handlers in Rust.

    It is a single file without dependencies: copy it beside the crate's ``lib.rs`` and declare
    ``mod primax_ffi;``. Its documentation has an example; ``python -m primax_ffi new NAME
    --language rust`` writes a whole project.

    >>> rust_bindings().name
    'primax_ffi.rs'
    """
    return Path(__file__).with_name("rust") / "primax_ffi.rs"
