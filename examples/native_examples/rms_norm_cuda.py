"""RMS normalization on an NVIDIA GPU: ``rms_norm`` then runs where its operands are."""

from __future__ import annotations

from primax_ffi import load_library

from . import library
from .rms_norm import SIGNATURES, rms_norm as rms_norm

load_library(library.cuda_path(), list(SIGNATURES), platform="cuda", signatures=SIGNATURES)
