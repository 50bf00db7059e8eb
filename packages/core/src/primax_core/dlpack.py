"""Zero-copy exchange of arrays with other libraries, through the DLPack protocol."""

from ._runtime.dlpack import from_dlpack as from_dlpack, is_supported_dtype as is_supported_dtype
