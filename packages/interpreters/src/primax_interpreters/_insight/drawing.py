"""Drawing of a jaxpr: its operations in layers, each below its operands."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from html import escape
from math import log2
from typing import Any

from primax_core.extend import Eqn, Jaxpr, Var, jaxprs_in, live_eqns, nbytes

from .costs import equations
from .places import Places
from .text import size

MOST_NODES = 60
_FEWEST_NODES = 4
_MOST_ARGUMENTS = 12
_WIDTH, _HEIGHT, _GAP, _RISE = 7.2, 34, 18, 58
_COLORS = {  # in light and in dark themes
    "argument": ("#e8eef7", "#263347"), "result": ("#e8eef7", "#263347"),
    "contraction": ("#f7d9c4", "#5a3a20"), "movement": ("#eeeeee", "#3a3a3a"),
    "reduction": ("#dcefd8", "#2b4527"), "program": ("#e6dcf2", "#40314f"),
    "other": ("#fdf3cf", "#4a4220"),
}  # fmt: skip
_CLASSES = {
    "contraction": "dot_general conv_general_dilated ragged_dot_general triangular_solve cholesky "
    "lu qr svd eigh fft",
    "movement": "reshape squeeze transpose broadcast_in_dim concatenate slice dynamic_slice gather "
    "dynamic_update_slice scatter pad rev copy convert_element_type iota select_n split stack",
    "reduction": "reduce_sum reduce_max reduce_min reduce_prod reduce argmax argmin cumsum sort "
    "scatter-add reduce_window_sum reduce_window_max",
}
_CLASS_OF = {name: kind for kind, names in _CLASSES.items() for name in names.split()}


class Node:
    """A box of the picture."""

    __slots__ = ("label", "detail", "title", "kind", "above", "layer", "x", "width")

    def __init__(self, label: str, detail: str, title: str, kind: str):
        self.label = label
        self.detail = detail
        self.title = title
        self.kind = kind
        self.above: dict[Node, int] = {}  # what it needs, with the bytes of it
        self.layer = 0
        self.x = 0.0
        self.width = max(len(label), len(detail), 4) * _WIDTH + 14


class Drawing:
    """The picture; ``nodes`` are in topological order."""

    def __init__(self, nodes: list[Node]):
        self.nodes: list[Node] = nodes

    def svg(self) -> str:
        """The picture as an SVG element."""
        layers = _layered(self.nodes)
        _arrange(layers)
        return _svg(layers)


def drawn(jaxpr: Jaxpr, places: Places) -> Drawing:
    """The drawing of a jaxpr; a large one is drawn by scopes or lines."""
    groups = _groups(live_eqns(jaxpr), places)
    made_by: dict[Any, Node] = {}
    nodes = _arguments(jaxpr, made_by)
    for eqns in groups:
        node = _node(eqns, places)
        inside = {v for e in eqns for v in e.outvars}
        for v in dict.fromkeys(v for e in eqns for v in e.invars if type(v) is Var):
            if v not in inside and v in made_by:
                above = made_by[v]
                node.above[above] = node.above.get(above, 0) + nbytes(v.aval)
        for v in inside:
            made_by[v] = node
        nodes.append(node)
    outs = [v for v in jaxpr.outvars if type(v) is Var]
    if outs:
        text = outs[0].aval.str_short() if len(outs) == 1 else f"{len(outs)} arrays"
        result = Node("result" if len(outs) == 1 else "results", text, text, "result")
        for v in dict.fromkeys(outs):
            above = made_by[v]
            result.above[above] = result.above.get(above, 0) + nbytes(v.aval)
        nodes.append(result)
    return Drawing(nodes)


def _arguments(jaxpr: Jaxpr, made_by: dict) -> list[Node]:
    used = {v for e in live_eqns(jaxpr) for v in e.invars} | set(jaxpr.outvars)
    inputs = [v for v in (*jaxpr.constvars, *jaxpr.invars) if v in used]
    names = jaxpr.debug_info.arg_names or ()
    by_var = dict(zip(jaxpr.invars, names))
    if len(inputs) > _MOST_ARGUMENTS:
        total = sum(nbytes(v.aval) for v in inputs)
        node = Node(f"{len(inputs)} arguments", size(total), size(total), "argument")
        made_by.update(dict.fromkeys(inputs, node))
        return [node]
    nodes = []
    for v in inputs:
        text = v.aval.str_short()
        node = made_by[v] = Node(by_var.get(v, "constant"), text, text, "argument")
        nodes.append(node)
    return nodes


# Groups of equations, one after the other, so that the picture has no cycles


def _groups(eqns: Sequence[Eqn], places: Places) -> list[list[Eqn]]:
    if len(eqns) <= MOST_NODES:
        return [[e] for e in eqns]
    keys: list[Callable[[Eqn], Any]] = [
        lambda e: (_scopes(e), places.line(e.source_info)),
        lambda e: _scopes(e) or places.line(e.source_info).function,
        lambda e: _scopes(e)[:2] or places.line(e.source_info).function,
        lambda e: _scopes(e)[:1] or places.line(e.source_info).function,
    ]
    for key in keys:
        groups = _runs(eqns, key)
        if _FEWEST_NODES <= len(groups) <= MOST_NODES:
            return groups
    step = -(-len(eqns) // MOST_NODES)
    return [list(eqns[i : i + step]) for i in range(0, len(eqns), step)]


def _scopes(eqn: Eqn) -> tuple[str, ...]:
    """The named scopes of an equation, without the transformations, whose names end in brackets."""
    return tuple(s for s in eqn.ctx if not s.endswith("()"))


def _runs(eqns: Sequence[Eqn], key: Callable[[Eqn], Any]) -> list[list[Eqn]]:
    groups: list[list[Eqn]] = []
    before: Any = object()
    for e in eqns:
        now = key(e)
        if now == before:
            groups[-1].append(e)
        else:
            groups.append([e])
        before = now
    return groups


def _node(eqns: list[Eqn], places: Places) -> Node:
    line = places.line(eqns[0].source_info)
    where = f"{line.short}  {line.text}" if line.number else ""
    outs = [v.aval for v in eqns[-1].outvars]
    detail = outs[0].str_short() if len(outs) == 1 else f"{len(outs)} arrays"
    if len(eqns) > 1:
        counts = Counter(e.primitive.name for e in eqns)
        title = "\n".join([where, *(f"{n} {name}" for name, n in counts.most_common(12))])
        label = "/".join(_scopes(eqns[0])) or line.function or "part"
        label = label.rpartition("<locals>.")[2]
        return Node(_short(label), f"{len(eqns)} equations", title, _dominant(counts))
    (eqn,) = eqns
    held = jaxprs_in(eqn.params)
    name, kind = eqn.primitive.name, _CLASS_OF.get(eqn.primitive.name, "other")
    if held:
        kind, called = "program", eqn.params.get("name")
        name = f"{name} {called}" if called else name
        if "length" in eqn.params:
            name += f" x {eqn.params['length']}"
        detail = f"{sum(map(equations, held))} equations"
    types = ", ".join(a.str_short() for a in outs)
    title = "\n".join(filter(None, (where, "/".join(_scopes(eqn)), types)))
    return Node(_short(name), _short(detail), title, kind)


def _dominant(counts: Counter[str]) -> str:
    kinds = Counter(_CLASS_OF.get(name, "other") for name in counts.elements())
    return "contraction" if kinds["contraction"] else kinds.most_common(1)[0][0]


def _short(text: str) -> str:
    return text if len(text) <= 28 else text[:27] + "…"


# Layout


def _layered(nodes: list[Node]) -> list[list[Node]]:
    layers: list[list[Node]] = []
    first_use: dict[Node, int] = {}
    for node in nodes:
        node.layer = max((a.layer + 1 for a in node.above), default=0)
        for a in node.above:
            first_use[a] = min(first_use.get(a, node.layer), node.layer)
    for node in nodes:
        if not node.above:  # arguments and constants stand near what needs them
            node.layer = max(first_use.get(node, 1) - 1, 0)
        while len(layers) <= node.layer:
            layers.append([])
        layers[node.layer].append(node)
    return layers


def _arrange(layers: list[list[Node]]) -> None:
    """Place each node near its operands, without overlaps."""
    below: dict[Node, list[Node]] = {}
    for layer in layers:
        for node in layer:
            for a in node.above:
                below.setdefault(a, []).append(node)
    for layer in layers:
        _spread(layer, [float(i) for i in range(len(layer))])
    for _ in range(4):
        for layer in layers[1:]:
            _spread(layer, [_mean(n, n.above) for n in layer])
        for layer in reversed(layers[:-1]):
            _spread(layer, [_mean(n, below.get(n, ())) for n in layer])


def _mean(node: Node, others: Any) -> float:
    xs = [o.x for o in others]
    return sum(xs) / len(xs) if xs else node.x


def _spread(layer: list[Node], targets: list[float]) -> None:
    order = sorted(range(len(layer)), key=lambda i: targets[i])
    at, placed = float("-inf"), []
    for i in order:
        node = layer[i]
        node.x = max(targets[i], at + node.width / 2)
        at = node.x + node.width / 2 + _GAP
        placed.append(i)
    shift = sum(layer[i].x - targets[i] for i in placed) / len(placed)
    for node in layer:
        node.x -= shift
    layer[:] = [layer[i] for i in order]


def dark_rules() -> dict[str, str]:
    """Selectors and declarations of CSS for a drawing in a dark theme."""
    boxes = {f"svg .{kind}": f"fill: {colors[1]};" for kind, colors in _COLORS.items()}
    return {**boxes, "svg text": "fill: #ddd;", "svg text.detail": "fill: #aaa;"}


def _svg(layers: list[list[Node]]) -> str:
    nodes = [n for layer in layers for n in layer]
    if not nodes:
        return "<p>The program has no equations.</p>"
    left = min(n.x - n.width / 2 for n in nodes) - 10
    right = max(n.x + n.width / 2 for n in nodes) + 10
    height = len(layers) * _RISE + 10
    edges = [_edge(above, n, carried) for n in nodes for above, carried in n.above.items()]
    return "\n".join(
        (
            f'<svg viewBox="{left:.0f} 0 {right - left:.0f} {height}" '
            f'width="{right - left:.0f}" height="{height}" role="img" aria-label="the program">',
            '<g fill="none" stroke="#9ab" stroke-opacity="0.65">', *edges, "</g>",
            '<g font-family="ui-monospace, monospace" font-size="11" text-anchor="middle">',
            *map(_box, nodes), "</g></svg>",
        )
    )  # fmt: skip


def _y(node: Node) -> float:
    return node.layer * _RISE + 8


def _edge(above: Node, node: Node, carried: int) -> str:
    x1, y1, x2, y2 = above.x, _y(above) + _HEIGHT, node.x, _y(node)
    bend = max((y2 - y1) / 2, 12)
    thick = 0.8 + min(log2(max(carried, 1)) / 8, 4)
    return (
        f'<path stroke-width="{thick:.1f}" d="M{x1:.0f} {y1:.0f} C{x1:.0f} '
        f'{y1 + bend:.0f} {x2:.0f} {y2 - bend:.0f} {x2:.0f} {y2:.0f}"><title>{size(carried)}'
        "</title></path>"
    )


def _box(node: Node) -> str:
    x, y = node.x - node.width / 2, _y(node)
    return (
        f'<g><title>{escape(node.title)}</title><rect x="{x:.0f}" y="{y:.0f}" rx="5" '
        f'width="{node.width:.0f}" height="{_HEIGHT}" class="{node.kind}" '
        f'fill="{_COLORS[node.kind][0]}" stroke="#888" stroke-width="0.6"/>'
        f'<text x="{node.x:.0f}" y="{y + 14:.0f}">{escape(node.label)}</text>'
        f'<text class="detail" fill="#666" font-size="10" x="{node.x:.0f}" y="{y + 28:.0f}">'
        f"{escape(node.detail)}</text></g>"
    )
