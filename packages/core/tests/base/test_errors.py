"""Texts of the errors, and the documentation section of each class."""

import pathlib
import pickle

import numpy as np
import pytest

from primax_core import errors

PAGE = "https://primax.readthedocs.io/en/latest/errors.html"
ORIGIN = (
    "The error occurred while tracing the function f at file.py:3 for jit. This concrete value was "
    "not available in Python because it depends on the value of the argument x."
)


class Aval:
    dtype = np.dtype("float32")
    shape = (2, 3)


class Tracer:
    aval = Aval()

    def __init__(self, origin=ORIGIN):
        self.origin = origin

    def _origin(self):
        return self.origin


SHAPE = "traced array with shape float32[2,3]"
CASES = {
    errors.TracerBoolConversionError: f"Attempted boolean conversion of {SHAPE}.",
    errors.TracerIntegerConversionError: f"The __index__() method was called on {SHAPE}",
    errors.TracerArrayConversionError: (
        f"The numpy.ndarray conversion method __array__() was called on {SHAPE}"
    ),
    errors.ConcretizationTypeError: (
        f"Abstract tracer value encountered where concrete value is expected: {SHAPE}"
    ),
    errors.NonConcreteBooleanIndexError: f"Array boolean indices must be concrete; got {SHAPE}",
}


@pytest.mark.parametrize("cls", CASES)
def test_tracer_errors(cls):
    reference = f"See {PAGE}#{cls.__name__.lower()}"
    assert str(cls(Tracer())) == f"{CASES[cls]}\n{ORIGIN}\n{reference}"
    assert str(cls(Tracer(""))) == f"{CASES[cls]}\n{reference}"
    with pytest.raises(AttributeError):
        cls(1)


def test_context_of_a_concretization_error():
    hinted = str(errors.ConcretizationTypeError(Tracer(), "int")).split("\n")
    assert hinted[1] == (
        "The problem arose in `int` of a traced value. If you want integers inside the traced "
        "function, use `x.astype(int)`."
    )
    told = str(errors.ConcretizationTypeError(Tracer(), "The axis must be static.")).split("\n")
    assert told[1:3] == ["The axis must be static.", ORIGIN]


@pytest.mark.parametrize(
    "name",
    ["UnexpectedTracerError", "KeyReuseError", "LeakedTracerError", "TracingRecursionError",
     "JaxprTypeError", "InconclusiveDimensionOperation", "PrimaxTypeError", "PrimaxIndexError"],
)  # fmt: skip
def test_errors_with_a_message(name):
    error = getattr(errors, name)("What happened.")
    assert str(error) == f"What happened.\nSee {PAGE}#{name.lower()}"
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again)) == (type(error), str(error))


def test_tracer_errors_pickle():
    error = errors.TracerBoolConversionError(Tracer())
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again)) == (type(error), str(error))


@pytest.mark.parametrize(
    ("cls", "bases"),
    [
        ("TracerBoolConversionError", ("ConcretizationTypeError", "PrimaxTypeError", TypeError)),
        ("TracerArrayConversionError", ("PrimaxTypeError", TypeError)),
        ("TracerIntegerConversionError", ("PrimaxTypeError", TypeError)),
        ("UnexpectedTracerError", ("PrimaxTypeError",)),
        ("KeyReuseError", ("PrimaxTypeError",)),
        ("NonConcreteBooleanIndexError", ("PrimaxIndexError", IndexError)),
        ("JaxRuntimeError", (RuntimeError,)),
        ("JaxprTypeError", (TypeError,)),
        ("TracingRecursionError", (RecursionError,)),
    ],
)
def test_bases(cls, bases):
    for base in bases:
        assert issubclass(
            getattr(errors, cls), getattr(errors, base) if isinstance(base, str) else base
        )


def test_array_and_integer_errors_are_not_concretization_errors():
    for name in ("TracerArrayConversionError", "TracerIntegerConversionError"):
        assert not issubclass(getattr(errors, name), errors.ConcretizationTypeError)


def test_a_tracer_without_shape():
    class Token(Tracer):
        aval = "Tok"

    text = str(errors.TracerBoolConversionError(Token()))
    assert text.startswith("Attempted boolean conversion of traced value of type Tok.")


def test_every_class_has_a_section():
    page = pathlib.Path(__file__).parents[4] / "docs" / "errors.md"
    if not page.exists():
        pytest.skip("the documentation is not beside these tests")
    sections = {line[3:] for line in page.read_text().splitlines() if line.startswith("## ")}
    names = {name for name in dir(errors) if isinstance(getattr(errors, name), type)}
    assert {*names, "TypePromotionError"} <= sections
