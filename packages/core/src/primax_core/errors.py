"""Error classes of Primax. ``docs/errors`` has a page for each."""

from ._base.errors import (
    ConcretizationTypeError as ConcretizationTypeError,
    InconclusiveDimensionOperation as InconclusiveDimensionOperation,
    InvalidArtifactError as InvalidArtifactError,
    JaxprTypeError as JaxprTypeError,
    KeyReuseError as KeyReuseError,
    LeakedTracerError as LeakedTracerError,
    NonConcreteBooleanIndexError as NonConcreteBooleanIndexError,
    PrimaxIndexError as PrimaxIndexError,
    PrimaxTypeError as PrimaxTypeError,
    TracerArrayConversionError as TracerArrayConversionError,
    TracerBoolConversionError as TracerBoolConversionError,
    TracerIntegerConversionError as TracerIntegerConversionError,
    TracingRecursionError as TracingRecursionError,
    UnexpectedTracerError as UnexpectedTracerError,
)
from ._runtime.jaxlib_errors import JaxRuntimeError as JaxRuntimeError
