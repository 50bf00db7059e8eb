"""Pages of the API reference in MyST's Markdown, one for each public module.

    python -m tools.api_pages FOLDER

The names come from the imported modules. Docstrings are parsed by griffe; their text is Markdown
rather than reStructuredText, which autodoc would expect.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import logging
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import griffe

DISTRIBUTIONS: Final = sorted(
    name
    for name, value in vars(importlib.import_module("primax.scipy.stats")).items()
    if isinstance(value, ModuleType) and name[0] != "_"
)
MODULES: Final = {
    "Transformations and arrays": (
        "primax", "primax.lax", "primax.lax.linalg", "primax.tree", "primax.tree_util",
        "primax.custom_batching", "primax.custom_derivatives", "primax.dtypes", "primax.errors",
        "primax.stages", "primax.typing", "primax.memory", "primax.dlpack",
    ),
    "NumPy and random numbers": (
        "primax.numpy", "primax.numpy.linalg", "primax.numpy.fft", "primax.random",
        "primax.image", "primax.ops",
    ),
    "SciPy": (
        "primax.scipy.cluster.vq", "primax.scipy.fft", "primax.scipy.integrate",
        "primax.scipy.interpolate", "primax.scipy.linalg", "primax.scipy.ndimage",
        "primax.scipy.optimize", "primax.scipy.signal", "primax.scipy.signal.windows",
        "primax.scipy.sparse.linalg", "primax.scipy.spatial.distance",
        "primax.scipy.spatial.transform", "primax.scipy.special", "primax.scipy.stats",
        *[f"primax.scipy.stats.{name}" for name in DISTRIBUTIONS],
        "primax.experimental.ode", "primax.experimental.sparse",
    ),
    "Neural networks": (
        "primax.nn", "primax.nn.initializers", "primax.example_libraries.stax",
        "primax.example_libraries.optimizers",
    ),
    "Several devices": (
        "primax.sharding", "primax.distributed", "primax.experimental.multihost_utils",
        "primax.experimental.mesh_utils", "primax.experimental.custom_partitioning",
        "primax.experimental.array_serialization.serialization",
    ),
    "Kernels and native code": (
        "primax.experimental.pallas", "primax.experimental.pallas.tpu",
        "primax.experimental.pallas.triton", "primax_kernels.ops", "primax.ffi",
    ),
    "Tools": (
        "primax.debug", "primax.export", "primax.profiler", "primax.monitoring",
        "primax.experimental.checkify", "primax.experimental.jet", "primax.insight",
    ),
    "Extension API": (
        "primax_core.extend", "primax_core.extend.elementwise", "primax_core.extend.traces",
        "primax_core.extend.lowering", "primax_core.extend.native",
        "primax_core.extend.references", "primax_core.extend.runtime",
        "primax_core.extend.portable_modules", "primax_core.extend.dimensions",
        "primax_core.testing",
    ),
}  # fmt: skip


def write(folder: Path) -> None:
    """Write an index and a page for each module."""
    logging.getLogger("griffe").setLevel(logging.ERROR)  # types are in signatures, if anywhere
    folder.mkdir(parents=True, exist_ok=True)
    index = ["# API reference", "", "All public names by module.", ""]
    for title, modules in MODULES.items():
        index += [f"## {title}", "", *[f"- [`{m}`]({m}.md)" for m in modules], ""]
        for name in modules:
            (folder / f"{name}.md").write_text("\n".join(_page(name)), encoding="utf-8")
    (folder / "index.md").write_text("\n".join(index), encoding="utf-8")


def public(module: ModuleType) -> dict[str, Any]:
    """The public names of a module and their values, without modules.

    Names of wheels that are not installed (native kernels, without a C++ compiler) are left out.
    """
    names = getattr(module, "__all__", None) or [n for n in dir(module) if n[:1] != "_"]
    pairs = {}
    for name in sorted({*names} - {"annotations", "TYPE_CHECKING"}, key=str.lower):
        with contextlib.suppress(ImportError):
            pairs[name] = getattr(module, name)
    return {n: v for n, v in pairs.items() if not _is_imported(v)}


def _is_imported(value: Any) -> bool:
    return isinstance(value, ModuleType) or getattr(value, "__module__", None) == "typing"


def _page(name: str) -> Iterator[str]:
    module = importlib.import_module(name)
    yield f"# `{name}`"
    yield ""
    yield from _sections(inspect.getdoc(module) or "")
    groups: dict[str, list[str]] = {"Classes": [], "Functions": [], "Other names": []}
    values = public(module)
    for own, value in values.items():
        groups[_group(value)].append(own)
    yield f"```{{py:module}} {name}"
    yield "```"
    for title, names in groups.items():
        if names:
            yield from ["", f"## {title}", "", "| | |", "|---|---|"]
            yield from [f"| {{py:obj}}`{n} <{name}.{n}>` | {_summary(values[n])} |" for n in names]
            yield ""
    for own, value in values.items():
        yield from _entry(own, value)


def _group(value: Any) -> str:
    if inspect.isclass(value):
        return "Classes"
    return "Functions" if callable(value) and inspect.getdoc(value) else "Other names"


def _summary(value: Any) -> str:
    """The first sentence of a docstring, for a cell of a table."""
    text = _doc(value).partition("\n\n")[0].replace("\n", " ").replace("|", "\\|")
    text = re.sub(r":(?:func|class|meth|mod|obj):", "", text)
    return re.split(r"(?<=[.:])\s", text)[0].rstrip(":")


def _doc(value: Any) -> str:
    """The docstring; none for values that inherit it from their type."""
    if not callable(value) or value.__doc__ is None:
        return ""
    return inspect.getdoc(value) or ""


def _entry(name: str, value: Any) -> Iterator[str]:
    kind = {"Classes": "class", "Functions": "function"}.get(_group(value), "data")
    signature = "" if kind == "data" else _signature(value)
    yield from ["", f"::::::{{py:{kind}}} {name}{signature}", ""]
    yield from _sections(_doc(value))
    if kind == "class" and not issubclass(value, BaseException):
        for own, member in _members(value):
            yield from _member(own, member)
    yield "::::::"


def _members(cls: type) -> Iterator[tuple[str, Any]]:
    """Documented public methods and properties that the class itself defines."""
    for name, member in vars(cls).items():
        if name[0] != "_" and inspect.getdoc(member) and not inspect.isclass(member):
            unwrapped = getattr(member, "__func__", member)
            if isinstance(unwrapped, property) or inspect.isfunction(unwrapped):
                yield name, unwrapped


def _member(name: str, member: Any) -> Iterator[str]:
    is_property = isinstance(member, property)
    signature = "" if is_property else _signature(member, method=True)
    yield from ["", f":::::{{py:{'property' if is_property else 'method'}}} {name}{signature}", ""]
    yield from _sections(inspect.getdoc(member) or "")
    yield ":::::"


def _signature(value: Any, method: bool = False) -> str:
    """The parameters with defaults, without annotations."""
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return "(...)"
    parameters = [
        p.replace(annotation=p.empty, default=p.empty if p.default is p.empty else _Text(p.default))
        for p in list(signature.parameters.values())[1 if method else 0 :]
    ]
    return str(signature.replace(parameters=parameters, return_annotation=signature.empty))


class _Text:
    """A default value, which is shown without addresses of objects."""

    def __init__(self, value: Any) -> None:
        text = repr(value)
        self.text = getattr(value, "__name__", type(value).__name__) if " at 0x" in text else text

    def __repr__(self) -> str:
        return self.text


def _sections(docstring: str) -> Iterator[str]:
    """A docstring in Google's style as Markdown."""
    docstring = re.sub(r":(?:func|class|meth|mod|obj):`~?", "{py:obj}`", docstring)
    for section in griffe.Docstring(docstring, parser="google", lineno=1).parse():
        match section.kind:
            case griffe.DocstringSectionKind.text | griffe.DocstringSectionKind.admonition:
                yield from _text(section)
            case griffe.DocstringSectionKind.examples:
                for _, text in section.value:
                    yield from _prose(text)
            case kind:
                yield from ["", f"**{kind.value.capitalize()}**", ""]
                for item in section.value:
                    yield from _item(item)
                yield ""


def _item(item: Any) -> Iterator[str]:
    title = getattr(item, "name", "") or getattr(item, "annotation", "")
    lines = item.description.strip().splitlines() or [""]
    start = f"`{title}`: " if title else ""
    yield f"- {start}{lines[0]}"
    yield from [f"  {line}" for line in lines[1:]]


def _text(section: Any) -> Iterator[str]:
    if section.kind is griffe.DocstringSectionKind.admonition:
        yield from ["", f"**{section.title}**", ""]
        yield from _prose(section.value.description)
    else:
        yield from _prose(section.value)


def _prose(text: str) -> Iterator[str]:
    """Paragraphs; examples become blocks of code."""
    for paragraph in text.split("\n\n"):
        before, prompt, code = paragraph.partition(">>> ")
        if before.strip():
            yield from ["", before.strip(), ""]
        if prompt:
            yield from ["", "```pycon", prompt + inspect.cleandoc(code), "```", ""]


if __name__ == "__main__":
    write(Path(sys.argv[1]))
