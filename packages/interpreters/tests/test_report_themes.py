"""Colours of reports in dark themes of pages, notebooks and systems."""

import re

import numpy as np

import primax_core as px
from primax_interpreters import explain

X = np.ones(3, np.float32)


def styles(text):
    (style,) = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
    return style


def test_each_box_has_a_color_in_both_themes():
    report = explain(px.grad(lambda x: px.lax.reduce_sum(px.lax.sin(x), (0,))), X)
    text = report.to_html()
    style = styles(text)
    boxes = {*re.findall(r'<rect [^>]*class="(\w+)"', text)}
    assert boxes
    for kind in boxes:
        for theme in ("[data-theme=dark]", "[data-jp-theme-light=false]", ".vscode-dark"):
            assert f"{theme} .primax-report svg .{kind} {{ fill: " in style
    assert '<meta name="color-scheme" content="light dark">' in text


def test_theme_of_the_system_applies_if_the_page_chooses_none():
    report = explain(px.lax.sin, X)
    system = styles(report._repr_html_()).partition("@media (prefers-color-scheme: dark) {")[2]
    rule = system.partition("{")[0].strip()
    assert rule.startswith(":root:not(:has(") and rule.endswith(".primax-report")
    assert "[data-theme=light]" in rule and "[data-jp-theme-light=true]" in rule
