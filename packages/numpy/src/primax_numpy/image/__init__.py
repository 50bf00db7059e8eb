"""Image resizing and affine resampling."""

from ._resampling import ResizeMethod as ResizeMethod
from ._resizing import resize as resize
from ._resizing import scale_and_translate as scale_and_translate
