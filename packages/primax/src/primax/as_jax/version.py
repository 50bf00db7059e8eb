"""The reference's version."""

from ._top import VERSION as __version__, VERSION_INFO as __version_info__

__all__ = ["__version__", "__version_info__"]
