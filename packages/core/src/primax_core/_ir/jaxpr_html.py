"""Jaxprs in notebooks: the text with colours, for light and dark themes."""

from __future__ import annotations

import re
from html import escape
from typing import Final

# Colours of keywords, types, primitives and source lines: on light and on dark backgrounds.
_COLORS: Final = {
    "keyword": ("#8250df", "#c297ff"),
    "type": ("#116329", "#7ee787"),
    "primitive": ("#0550ae", "#79c0ff"),
    "line": ("#6e7781", "#9198a1"),
}
# Themes that are chosen on the page, of this site, JupyterLab and Visual Studio Code, precede the
# theme of the system.
_LIGHT: Final = ("[data-theme=light]", "[data-jp-theme-light=true]", ".vscode-light")
_DARK: Final = ("[data-theme=dark]", "[data-jp-theme-light=false]", ".vscode-dark")
_TOKEN: Final = re.compile(
    r"(?P<line>\s#.*$)"
    r"|(?P<keyword>(?<![<\w])(?:lambda|let|in)\b)"
    r"|(?<=:)(?P<type>[^\s:;,()\[\]{}]+(?:\{[^\n]*?\}|\[[^\]\n]*\])+)"
    r"|(?<== )(?P<primitive>[\w.-]+)",
    re.MULTILINE,
)


def jaxpr_html(text: str) -> str:
    """The text of a jaxpr as HTML, with the colours of its parts."""
    parts, end = [], 0
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup
        start, stop = match.span(kind)
        parts += [
            escape(text[end:start]),
            f'<span class="{kind}">{escape(text[start:stop])}</span>',
        ]
        end = stop
    parts.append(escape(text[end:]))
    return f'<div><style>{_style()}</style><pre class="primax-jaxpr">{"".join(parts)}</pre></div>'


def _style() -> str:
    light, dark = _rules(0), _rules(1)
    return "".join(
        (
            *(f".primax-jaxpr {rule}" for rule in light),
            "@media (prefers-color-scheme: dark) {",
            *(f".primax-jaxpr {rule}" for rule in dark),
            "}",
            *(f"{theme} .primax-jaxpr {rule}" for theme in _LIGHT for rule in light),
            *(f"{theme} .primax-jaxpr {rule}" for theme in _DARK for rule in dark),
        )
    )


def _rules(theme: int) -> list[str]:
    return [f".{kind} {{ color: {colors[theme]}; }}\n" for kind, colors in _COLORS.items()]
