"""Texts of the errors, and the documentation page of each class."""

import pathlib
import pickle
import traceback

import numpy as np
import pytest

from primax_core import errors

PAGES = "https://primax.readthedocs.io/en/latest/errors/"
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
# The first line of each error, and the line that says what to write instead.
CASES = {
    errors.TracerBoolConversionError: (
        f"Attempted boolean conversion of {SHAPE}.",
        "Choose by value with `lax.cond`, `lax.select` or `where`, or mark the argument as "
        "static (static_argnums) in jit.\n",
    ),
    errors.TracerIntegerConversionError: (
        f"The __index__() method was called on {SHAPE}",
        "Shapes, lengths and indices of Python lists need concrete integers: mark the argument as "
        "static (static_argnums) in jit, or index an array instead of a list.\n",
    ),
    errors.TracerArrayConversionError: (
        f"The numpy.ndarray conversion method __array__() was called on {SHAPE}",
        "Use the function of `primax.numpy` instead of NumPy's, or call NumPy by "
        "`pure_callback`.\n",
    ),
    errors.ConcretizationTypeError: (
        f"Abstract tracer value encountered where concrete value is expected: {SHAPE}",
        "",
    ),
    errors.NonConcreteBooleanIndexError: (
        f"Array boolean indices must be concrete; got {SHAPE}",
        "The number of selected elements must not depend on values: use `where(mask, x, y)`, "
        "or `nonzero(mask, size=...)`.\n",
    ),
}


@pytest.mark.parametrize("cls", CASES)
def test_tracer_errors(cls):
    first, remedy = CASES[cls]
    reference = f"See {PAGES}{cls.__name__}.html"
    assert str(cls(Tracer())) == f"{first}\n{ORIGIN}\n{remedy}{reference}"
    assert str(cls(Tracer(""))) == f"{first}\n{remedy}{reference}"
    with pytest.raises(AttributeError):
        cls(1)


@pytest.mark.parametrize("cls", CASES)
def test_tracebacks_show_the_public_name(cls):
    assert cls.__module__ == errors.__name__
    assert getattr(errors, cls.__name__) is cls
    shown = "".join(traceback.format_exception_only(cls(Tracer())))
    assert shown.startswith(f"{errors.__name__}.{cls.__name__}: ")


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
    assert str(error) == f"What happened.\nSee {PAGES}{name}.html"
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


def test_a_subclass_refers_to_the_page_of_its_base():
    class OwnError(errors.KeyReuseError):
        pass

    assert str(OwnError("Used.")) == f"Used.\nSee {PAGES}KeyReuseError.html"


def test_every_class_has_a_page():
    folder = pathlib.Path(__file__).parents[4] / "docs" / "errors"
    if not folder.exists():
        pytest.skip("the documentation is not beside these tests")
    names = {name for name in dir(errors) if isinstance(getattr(errors, name), type)}
    assert {*names, "TypePromotionError"} <= {page.stem for page in folder.glob("*.md")}
