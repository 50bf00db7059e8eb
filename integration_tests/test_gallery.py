"""The scripts of the gallery, with small sizes, and their pages and notebooks.

A script asserts the numbers that it prints, so a bad result is a failure.
"""

from __future__ import annotations

import ast
import json
import shutil
from pathlib import Path

import pytest

pytest.importorskip("matplotlib", reason="pip install -r examples/requirements.txt")
pytest.importorskip("sklearn", reason="pip install -r examples/requirements.txt")

from tools import gallery

SCRIPTS = gallery.scripts()


def stem(path: Path) -> str:
    return path.stem


@pytest.mark.rotate()
@pytest.mark.parametrize("script", SCRIPTS, ids=stem)
def test_script_reaches_its_numbers(script: Path) -> None:
    if script.stem == "rms_norm_cpp" and shutil.which("c++") is None:
        pytest.skip("needs a C++ compiler")
    result = gallery.run(script)
    assert any(cell.output for cell in result.cells), "a script prints the numbers that it reaches"
    assert result.pictures, "a script draws a picture"
    notebook = gallery.notebook(result)
    assert json.loads(json.dumps(notebook))["nbformat"] == 4
    nbformat = pytest.importorskip("nbformat", reason="nox -s docs installs nbformat")
    nbformat.validate(nbformat.from_dict(notebook))


@pytest.mark.parametrize("script", SCRIPTS, ids=stem)
def test_script_asserts_its_numbers_and_has_two_sizes(script: Path) -> None:
    source = script.read_text("utf-8")
    statements = ast.parse(source).body
    assert any(isinstance(s, ast.Assert) for s in statements), "no assertion at the top level"
    assert 'QUICK = "--quick" in sys.argv' in source
    title, _, introduction = (ast.get_docstring(ast.parse(source)) or "").partition("\n\n")
    assert "\n" not in title and introduction


def test_index_has_each_script() -> None:
    names = [name for names in gallery.SECTIONS.values() for name in names]
    assert len(names) >= 20
    assert sorted(names) == [script.stem for script in SCRIPTS]


def test_cells_of_a_script() -> None:
    source = '"""Title\n\nText.\n"""\n\n# %%\nx = 1\n\n# %% [markdown]\n# ## Part\n#\n# Word.\n'
    first, code, text = gallery.cells_of(source)
    assert (first.kind, first.text) == ("markdown", "# Title\n\nText.")
    assert (code.kind, code.text) == ("code", "x = 1")
    assert (text.kind, text.text) == ("markdown", "## Part\n\nWord.")
    with pytest.raises(ValueError, match="no docstring"):
        gallery.cells_of("x = 1\n")


def test_page_and_notebook_show_output_and_pictures(tmp_path: Path) -> None:
    script = tmp_path / "small.py"
    script.write_text(
        '"""Small\n\nText."""\n\n# %%\nimport matplotlib.pyplot as plt\nimport sys\n\n'
        'print("quick" if "--quick" in sys.argv else "full")\nplt.plot([1, 2])\nplt.show()\n',
        "utf-8",
    )
    result = gallery.execute(script, tmp_path, quick=True)
    (picture,) = result.pictures
    assert (tmp_path / picture).read_bytes()[1:4] == b"PNG"
    page = "\n".join(gallery.page(result))
    assert "# Small\n\nText." in page and "```output\nquick\n```" in page
    assert f"![Small]({picture})" in page
    result.cells[1].pictures = [str(tmp_path / picture)]
    outputs = gallery.notebook(result)["cells"][1]["outputs"]
    assert [o["output_type"] for o in outputs] == ["stream", "display_data"]


def test_failing_script_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gallery, "CACHE", tmp_path)
    script = tmp_path / "bad.py"
    script.write_text('"""Bad\n\nText."""\n\n# %%\nassert 1 > 2\n', "utf-8")
    with pytest.raises(RuntimeError, match=r"fails with exit status 1:[\s\S]*AssertionError"):
        gallery.run(script)
