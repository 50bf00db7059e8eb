"""Pages and notebooks of the gallery, from the scripts in ``examples/gallery``.

    python -m tools.gallery FOLDER [--full] [--only NAME...]

A script is in the percent format, which Jupytext, VS Code and Spyder read too: ``# %%`` begins a
cell of code, ``# %% [markdown]`` a cell of text, and the docstring is the title with an
introduction. Each script runs in its own process, because some set the number of devices. The
results are kept in ``build/gallery`` and are reused while the script, the sizes and the sources of
the wheels are unchanged.
"""

from __future__ import annotations

import argparse
import ast
import base64
import contextlib
import hashlib
import io
import json
import os
import re
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parent.parent
SCRIPTS: Final = ROOT / "examples" / "gallery"
CACHE: Final = ROOT / "build" / "gallery"
QUICK: Final = "--quick"
MARKER: Final = re.compile(r"^# %%(?: \[(\w+)\])?.*$", re.MULTILINE)
SECTIONS: Final = {
    "Networks": (
        "character_transformer", "cnn_digits", "vae", "diffusion", "rnn", "maml",
    ),
    "Inference and decisions": ("hmc", "gaussian_process", "grid_world", "effect_handlers"),
    "Simulation": (
        "neural_ode", "pinn", "n_body", "lattice_boltzmann", "ray_marcher", "sparse_solver",
        "image_filters",
    ),
    "Devices, kernels, native code": ("fsdp", "flash_attention", "rms_norm_cpp"),
}  # fmt: skip


@dataclass
class Cell:
    """A cell, and after execution its output and the PNG files of its pictures."""

    kind: str
    text: str
    output: str = ""
    pictures: list[str] = field(default_factory=list)


@dataclass
class Result:
    """The executed cells of a script, and the seconds that they took."""

    name: str
    cells: list[Cell]
    seconds: float
    quick: bool

    @property
    def title(self) -> str:
        """The first line of the script's docstring."""
        return self.cells[0].text.partition("\n")[0].removeprefix("# ")

    @property
    def pictures(self) -> list[str]:
        """All pictures, in order."""
        return [p for c in self.cells for p in c.pictures]


def scripts() -> list[Path]:
    """The scripts of the gallery."""
    return sorted(SCRIPTS.glob("*.py"))


def cells_of(source: str) -> list[Cell]:
    """The cells of a script; the first contains its docstring as Markdown."""
    tree = ast.parse(source)
    docstring = ast.get_docstring(tree)
    if docstring is None:
        raise ValueError("the script has no docstring, which is the title of its page")
    cells = [Cell("markdown", "# " + docstring)]
    rest = "\n".join(source.splitlines()[tree.body[0].end_lineno :])
    starts = [*MARKER.finditer(rest)]
    for marker, following in zip(starts, [*starts[1:], None]):
        text = rest[marker.end() : following.start() if following else None].strip("\n")
        kind = marker.group(1) or "code"
        if kind == "markdown":
            text = "\n".join(re.sub(r"^# ?", "", line) for line in text.splitlines())
        cells.append(Cell(kind, text))
    return cells


def execute(script: Path, folder: Path, quick: bool) -> Result:
    """Run the cells of a script in this process; its figures become PNG files in ``folder``."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    plt.show = lambda *args, **kwargs: None  # a figure is saved when its cell has run
    plt.rcParams.update({"figure.dpi": 110, "savefig.bbox": "tight"})
    cells = cells_of(script.read_text(encoding="utf-8"))
    sys.argv = [str(script), *([QUICK] if quick else [])]
    namespace: dict[str, Any] = {"__name__": "__main__", "__file__": str(script)}
    start = time.perf_counter()
    for i, cell in enumerate(cells):
        if cell.kind != "code":
            continue
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(cell.text, f"{script.name}, cell {i}", "exec"), namespace)
        cell.output = printed.getvalue()
        for number in plt.get_fignums():
            cell.pictures.append(f"{script.stem}-{i}-{number}.png")
            plt.figure(number).savefig(folder / cell.pictures[-1])
            plt.close(number)
    return Result(script.stem, cells, time.perf_counter() - start, quick)


def run(script: Path, quick: bool = True, reuse: bool = True) -> Result:
    """Run a script in a process of its own, or read what an earlier run left.

    Raises:
      RuntimeError: if the script fails, with its output.
    """
    folder = CACHE / f"{script.stem}-{_fingerprint(script, quick)}"
    if not (reuse and (folder / "result.json").exists()):
        folder.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "tools.gallery", str(folder), "--execute", str(script)]
        command += [] if quick else ["--full"]
        path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
        env = {**os.environ, "PYTHONPATH": path}
        process = subprocess.run(command, capture_output=True, text=True, env=env)
        if process.returncode:
            status = f"exit status {process.returncode}"
            text = f"{process.stdout}{process.stderr}"
            raise RuntimeError(f"{script.name} fails with {status}:\n{text}")
    return read(folder)


def read(folder: Path) -> Result:
    """A result that a run wrote; its pictures are complete paths."""
    values = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    cells = [Cell(**c) for c in values.pop("cells")]
    for cell in cells:
        cell.pictures = [str(folder / p) for p in cell.pictures]
    return Result(cells=cells, **values)


def _fingerprint(script: Path, quick: bool) -> str:
    digest = hashlib.sha256(f"{sys.version}{quick}".encode())
    sources = [script, Path(__file__), *sorted(ROOT.glob("packages/*/src/**/*.py"))]
    for path in sources:
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def page(result: Result) -> Iterator[str]:
    """The lines of the page of a script."""
    name = result.name
    size = "small sizes (`--quick`)" if result.quick else "full sizes"
    downloads = f"{{download}}`{name}.ipynb` · {{download}}`{name}.py`"
    for i, cell in enumerate(result.cells):
        if cell.kind == "markdown":
            yield from [cell.text, ""]
        else:
            yield from ["```python", cell.text, "```", ""]
        if i == 0:
            yield from [f"{downloads} · shown: {size}, {result.seconds:.1f} s", ""]
        if cell.output:
            yield from ["```output", cell.output.rstrip("\n"), "```", ""]
        for picture in cell.pictures:
            yield from [f"![{result.title}]({Path(picture).name})", ""]


def notebook(result: Result) -> dict[str, Any]:
    """The script with its results as a notebook, in version 4.5 of the format."""
    cells: list[dict[str, Any]] = []
    for i, cell in enumerate(result.cells):
        entry = {"cell_type": cell.kind, "id": f"cell-{i}", "metadata": {}, "source": cell.text}
        if cell.kind == "code":
            entry |= {"execution_count": None, "outputs": [*_outputs(cell)]}
        cells.append(entry)
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


def _outputs(cell: Cell) -> Iterator[dict[str, Any]]:
    if cell.output:
        yield {"output_type": "stream", "name": "stdout", "text": cell.output}
    for picture in cell.pictures:
        data = base64.b64encode(Path(picture).read_bytes()).decode()
        yield {"output_type": "display_data", "data": {"image/png": data}, "metadata": {}}


def index(results: dict[str, Result]) -> Iterator[str]:
    """The page with a card for each script."""
    yield from ["# Gallery", ""]
    yield "Complete programs with the pictures and numbers that they produce. Each runs as a script"
    yield "of [`examples/gallery`](../../examples/gallery), and as a notebook, on one CPU."
    for title, names in SECTIONS.items():
        present = [results[n] for n in names if n in results]
        if not present:
            continue
        yield from ["", f"## {title}", "", "::::{grid} 1 2 2 2", ":gutter: 3", ""]
        for result in present:
            yield from [f":::{{grid-item-card}} {result.title}", f":link: {result.name}"]
            yield from [":link-type: doc", f":img-top: {Path(result.pictures[-1]).name}"]
            yield from ["", _summary(result), ":::", ""]
        yield "::::"


def _summary(result: Result) -> str:
    """The first sentence of the introduction."""
    paragraph = result.cells[0].text.split("\n\n")[1].replace("\n", " ")
    return paragraph.partition(". ")[0].rstrip(".") + "."


def write(folder: Path, quick: bool = True, only: list[str] | None = None) -> None:
    """Run the scripts, two at a time, and write their pages, notebooks and pictures."""
    folder.mkdir(parents=True, exist_ok=True)
    chosen = [p for p in scripts() if not only or p.stem in only]
    with ThreadPoolExecutor(max_workers=2) as pool:
        results = {r.name: r for r in pool.map(lambda p: run(p, quick), chosen)}
    for name, result in results.items():
        lines = "\n".join(page(result))
        (folder / f"{name}.md").write_text(lines, encoding="utf-8")
        (folder / f"{name}.py").write_bytes((SCRIPTS / f"{name}.py").read_bytes())
        text = json.dumps(notebook(result), indent=1)
        (folder / f"{name}.ipynb").write_text(text + "\n", encoding="utf-8")
        for picture in result.pictures:
            (folder / Path(picture).name).write_bytes(Path(picture).read_bytes())
    (folder / "index.md").write_text("\n".join(index(results)) + "\n", encoding="utf-8")


def main() -> None:
    """Write the gallery, or execute one script for it."""
    parser = argparse.ArgumentParser(description=textwrap.dedent(__doc__.partition("\n")[0]))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--full", action="store_true", help="full sizes, which take minutes")
    parser.add_argument("--only", nargs="*", help="names of scripts")
    parser.add_argument("--execute", type=Path, help="run this script and write result.json")
    options = parser.parse_args()
    if options.execute is None:
        write(options.folder, not options.full, options.only)
        return
    result = execute(options.execute, options.folder, not options.full)
    text = json.dumps(asdict(result))
    (options.folder / "result.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
