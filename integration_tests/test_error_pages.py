"""Every public error class has a page of the documentation, and its texts end with the address."""

from __future__ import annotations

import pickle
import pkgutil
from pathlib import Path

import pytest

PAGES = {p.stem for p in (Path(__file__).parents[1] / "docs" / "errors").glob("*.md")}
FOLDER = "https://primax.readthedocs.io/en/latest/errors/"
MODULES = (
    "primax.errors",
    "primax.distributed",
    "primax.dtypes",
    "primax.extend",
    "primax.experimental.checkify",
    "primax.experimental.multihost_utils",
    "primax.experimental.pallas",
    "primax.experimental.pallas.tpu",
    "primax.experimental.pallas.triton",
    "primax.experimental.sparse",
    "primax_core.extend",
    "primax_core.extend.processes",
    "primax_distributed",
    "primax_distributed.checkpoint",
    "primax_distributed.processes",
)
WITHOUT_PAGE = {"LoweringException"}  # the reference's base class of `MosaicError`
WITHOUT_ADDRESS = {"JaxRuntimeError"}  # jaxlib's, and the base class of checkify's


PAGE_OF_BASE = {"ProcessFailureError": "ProcessFailure", "UnsupportedRule": "MissingRule"}


def error_classes() -> dict[str, type[BaseException]]:
    """The error classes that users can import, by name."""
    out = {}
    for module in map(pkgutil.resolve_name, MODULES):
        for name in dir(module):
            cls = getattr(module, name) if not name.startswith("_") else None
            if isinstance(cls, type) and issubclass(cls, BaseException):
                if cls.__module__.startswith("primax") and not issubclass(cls, Warning):
                    out[cls.__name__] = cls
    return out


CLASSES = error_classes()
TRACER_ERRORS = {n for n in CLASSES if "Tracer" in n or n.startswith(("Concret", "NonConcret"))}
WITH_MESSAGE = sorted(
    {*CLASSES} - WITHOUT_PAGE - WITHOUT_ADDRESS - (TRACER_ERRORS - {"UnexpectedTracerError"})
)


def test_classes_that_users_meet_have_pages():
    without = {n for n, c in CLASSES.items() if not PAGES & {b.__name__ for b in c.__mro__}}
    assert without == WITHOUT_PAGE
    assert {"MosaicError", "JoinError", "CheckpointError", "NaNError"} <= {*CLASSES}


@pytest.mark.parametrize("name", WITH_MESSAGE)
def test_text_ends_with_the_address_of_the_page(name):
    cls = CLASSES[name]
    arguments = ({"device 1"},) if name == "ProcessFailureError" else ()
    error = cls(*arguments, "What happened.\nAnd what to do.")
    page = PAGE_OF_BASE.get(name, name)
    assert page in PAGES
    assert str(error) == f"What happened.\nAnd what to do.\nSee {FOLDER}{page}.html"
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), vars(again)) == (cls, str(error), vars(error))


def test_a_subclass_of_a_user_refers_to_the_page_of_its_base():
    class OwnError(CLASSES["JoinError"]):
        pass

    assert str(OwnError("What happened.")) == f"What happened.\nSee {FOLDER}JoinError.html"
    assert OwnError("What happened.").args == ("What happened.",)
