"""Source locations and names of the operations of a lowered module.

Lowering writes a module without locations: its bytecode is the key of the caches, so equal programs
from different lines share an executable. Besides, it records the value that the rule of each
equation returned. :func:`locate` sets the MLIR locations when they are
needed: for a compilation, which is much slower, and for text.

The name of an operation is ``jit(f)/scope/sin``. Operations of private functions have names
relative to the call, because XLA prepends the name of the call.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from .._base import pytree, source
from .._base.operand_trees import numbered
from .._ir.jaxpr import jaxprs_in
from .._ir.name_stack import joined, without_transforms
from .._ir.scope_attributes import attributes_of
from .._runtime.jaxlib_versions import _hlo
from .context import context, ir

# The reference's names of the regions of loops and conditionals.
_REGIONS: Final[dict[str, tuple[str, Callable[[int], str]]]] = {
    "stablehlo.while": ("while", lambda i: ("cond", "body")[i]),
    "stablehlo.case": ("cond", lambda i: f"branch_{i}_fun"),
    "stablehlo.if": ("cond", lambda i: f"branch_{1 - i}_fun"),
    "sdy.manual_computation": ("shard_map", lambda i: ""),
}
_FRONTEND: Final = "mhlo.frontend_attributes"
_WITHOUT_ATTRIBUTES: Final = ("stablehlo.constant", "stablehlo.return", "func.return")
_CHECKPOINTS: Final = ("checkpoint", "remat2", "remat")


class Body:
    """The equations of a lowered jaxpr.

    Attributes:
      located: the equations have the source locations of their operations. A jaxpr of the library,
        which many lines share, has the location of the equation that contains it.
      parent, eqn: the jaxpr and the equation in it that contain this one, or ``None``.
      entries: each equation, followed by what its rule returned: a value or several. While an
        equation is lowered, it is the last entry.
      is_function: the body is an outer layer around that of a private function.
      needed: the variables that live equations or the results read, or ``None`` if not known.
    """

    __slots__ = ("located", "parent", "eqn", "entries", "is_function", "needed")

    def __init__(self, jaxpr: Any, parent: Body | None, needed: Any = None):
        self.needed = needed
        self.is_function = jaxpr is None
        self.located: bool = jaxpr is not None and jaxpr.debug_info.filename is not None
        self.parent = parent
        self.entries: list[Any] = []
        self.eqn: Any = parent.entries[-1] if parent is not None and parent.entries else None

    @property
    def scope(self) -> tuple[str, ...]:
        """The scopes of the current equation. They are relative in a private function, because XLA
        prepends the scopes of its calls."""
        body: Body | None = self
        scope: tuple[str, ...] = ()
        while body is not None and not body.is_function:
            scope = body.entries[-1].ctx + scope
            body = body.parent
        return scope


class Record(NamedTuple):
    """An equation and the body that contains it."""

    eqn: Any
    body: Body

    @property
    def parent(self) -> Record | None:
        """The equation around the body, in the same function."""
        body = self.body
        if body.parent is None or body.parent.is_function:
            return None
        return Record(body.eqn, body.parent)


def scopes_of(bodies: Sequence[Body]) -> bytes:
    """The named scopes of a module, for its digest; empty without named scopes."""
    scopes = []
    for i, body in enumerate(bodies):
        for j, eqn in enumerate(body.entries[::2]):
            if eqn.ctx:
                names = without_transforms(eqn.ctx)
                if names:
                    scopes.append((i, j, names))
    return repr(scopes).encode() if scopes else b""


def locate(module: Any, bodies: Sequence[Body], name: str, arg_names: Sequence[Any]) -> None:
    """Set the locations of a module's operations and of the arguments of ``main``.

    Args:
      name: the name of the function, ``f`` in ``jit(f)/sin``.
      arg_names: the name of each argument of ``main``, or ``None``.
    """
    with context:
        owners: dict[Any, Record] = {}
        for body in reversed(bodies):  # inner bodies first
            entries = body.entries
            for i in range(0, len(entries), 2):
                outs = entries[i + 1]
                for value in (outs,) if isinstance(outs, ir.Value) else outs:
                    if isinstance(value, ir.OpResult):
                        owners.setdefault(value.owner.operation, Record(entries[i], body))
        writer = _Writer(owners)
        for function in module.body.operations:
            is_main = _is_main(function)
            prefix = (f"jit({name})",) if is_main else ()
            for block in _blocks(function.operation.regions):
                writer.block(block, prefix, None, writer.named("".join(prefix), None))
            if is_main:
                arguments = function.operation.regions[0].blocks[0].arguments
                for argument, text in zip(arguments, arg_names):
                    if text:
                        argument.set_location(ir.Location.name(text))


def name_results(module: Any, out_tree: Any, count: int) -> None:
    """Set the attributes with the positions of the results of ``main`` in the output tree.

    Results that precede those of the tree, such as new contents of references, have no name.
    """
    with context:
        main = next(f for f in module.body.operations if _is_main(f))
        attributes = main.operation.attributes
        n = len(main.type.results)
        paths = pytree.tree_flatten_with_path(numbered(out_tree))[0]
        names = [""] * (n - count) + ["result" + pytree.keystr(path) for path, _ in paths]
        old = attributes["res_attrs"] if "res_attrs" in attributes else [{}] * n
        results = []
        for entries, name in zip(old, names, strict=True):
            entry = {e.name: e.attr for e in entries}
            if name:
                entry["jax.result_info"] = ir.StringAttr.get(name)
            results.append(ir.DictAttr.get(entry))
        attributes["res_attrs"] = ir.ArrayAttr.get(results)


class _Writer:
    """Writes locations into the blocks of a module."""

    def __init__(self, owners: dict[Any, Record]):
        self.owners = owners
        self.unknown: Any = ir.Location.unknown()
        self.locations: dict[tuple, Any] = {}
        self.files: dict[Any, Any] = {}

    def block(
        self, block: Any, prefix: tuple[str, ...], owner: Record | None, location: Any
    ) -> None:
        """Locate the operations of a block.

        Args:
          prefix: the scopes of the block.
          owner: the record of the operation that the block is a region of.
          location: for the operations after those of the last equation.
        """
        record = None
        attributes = self.attributes(prefix)
        # The value of an equation is the result of its last operation.
        for op in reversed([op.operation for op in block.operations]):
            ending = self.owners.get(op)
            if ending is not None:
                record = ending
                location = self.named(_name(prefix, ending, owner), _source(ending))
                attributes = self.attributes((*prefix, *_scopes(ending, owner)))
            if attributes and op.name not in _WITHOUT_ATTRIBUTES:
                own = op.attributes[_FRONTEND] if _FRONTEND in op.attributes else ()
                merged = attributes | {e.name: e.attr for e in own}
                op.attributes[_FRONTEND] = ir.DictAttr.get(merged)
            regions = op.regions
            if len(regions) != 0:
                names = _REGIONS.get(op.name)
                if names is None or record is None:
                    for inner in _blocks(regions):
                        self.whole(inner, location)
                else:
                    # The regions' names begin with that of the operation: otherwise XLA prepends
                    # it when it makes functions of them.
                    scopes = (*prefix, *_scopes(record, owner), "", names[0])
                    looped = self.named(joined(scopes), _source(record))
                    if op.location == self.unknown:
                        op.location = looped
                    for i, region in enumerate(regions):
                        for inner in region.blocks:
                            self.block(inner, (*scopes, names[1](i)), record, looped)
            if op.location == self.unknown:
                op.location = location

    def whole(self, block: Any, location: Any) -> None:
        """Give all operations of a block one location, unless they have one."""
        for op in block.operations:
            if op.location == self.unknown:
                op.operation.location = location
            for inner in _blocks(op.operation.regions):
                self.whole(inner, location)

    def attributes(self, scopes: tuple[str, ...]) -> dict[str, Any]:
        """The frontend attributes of operations in these scopes."""
        return {k: ir.StringAttr.get(v) for k, v in attributes_of(scopes).items()}

    def named(self, name: str, at: source.Source | None) -> Any:
        """The location with this name and source location."""
        known = self.locations.get((name, at))
        if known is None:
            file = None if at is None else self.file(at)
            known = ir.Location.name(name, file) if name else file or self.unknown
            self.locations[name, at] = known
        return known

    def file(self, at: source.Source) -> Any:
        """``"f"("file.py":3:5)``."""
        known = self.files.get(at)
        if known is None:
            position = source.locate(at)
            line = ir.Location.file(
                position.file, position.line, max(position.column - 1, 0), position.end_line,
                max(position.end_column - 1, 0),
            )  # fmt: skip
            known = self.files[at] = ir.Location.name(position.function, line)
        return known


def _is_main(op: Any) -> bool:
    attributes = op.operation.attributes
    return "sym_name" in attributes and attributes["sym_name"].value == "main"


def _blocks(regions: Any) -> Iterator[Any]:
    for region in regions:
        yield from region.blocks


def _scopes(record: Record, owner: Record | None) -> tuple[str, ...]:
    """The scopes around an equation, inside of ``owner``."""
    parent = record.parent
    scopes: tuple[str, ...] = ()
    if parent is not None and parent != owner:
        scopes = _scopes(parent, owner)
        if parent.eqn.primitive.name in _CHECKPOINTS:
            scopes += ("", "checkpoint")
    return scopes + record.eqn.ctx


def _name(prefix: tuple[str, ...], record: Record, owner: Record | None) -> str:
    while not record.body.located:
        parent = record.parent
        if parent is None or parent == owner or jaxprs_in(parent.eqn.params):
            break
        record = parent  # an operation of the expansion of a primitive
    eqn = record.eqn
    scopes = prefix + _scopes(record, owner)
    if eqn.primitive.name == "jit":
        return joined((*scopes, f"jit({eqn.params.get('name', 'fn')})"))
    outer = joined(scopes)
    return f"{outer}/{eqn.primitive.name}" if outer else eqn.primitive.name


def _source(record: Record | None) -> source.Source | None:
    """The innermost known location in user code."""
    if record is None:
        return None
    eqn, body = record
    while True:
        if body.located and eqn.source:
            return tuple(eqn.source)  # type: ignore[return-value]
        if body.parent is None:
            return None
        eqn, body = body.eqn, body.parent


def note_position(error: Exception, body: Body, eqn: Any) -> None:
    """Add an equation and its source location to an error of its lowering rule."""
    text = "The error occurred while lowering "
    notes = getattr(error, "__notes__", ())
    if not any(note.startswith(text) for note in notes):
        at = _source(Record(eqn, body))
        where = f", traced on line {source.summarize(at)}" if at else ""
        error.add_note(f"{text}{eqn.primitive.name}{where}.")


def note_compilation(error: Exception, lowered: Any) -> None:
    """Add to an error of XLA the function, and the lines that call a native function it names."""
    function = f"jit({lowered.name})"
    if lowered.jaxpr is not None and lowered.jaxpr.debug_info.filename:
        function += f", the function {lowered.jaxpr.debug_info.func_src_info}"
    note = f"The error occurred while compiling {function}."
    text = str(error)
    for op in _operations(lowered.module.operation):
        if op.name == "stablehlo.custom_call":
            target = op.attributes["call_target_name"].value
            at = _FILE.search(str(op.location))
            if at and re.search(rf"\b{re.escape(target)}\b", text):
                note += f"\n{target!r} is called on line {at[1]}:{at[2]}."
    error.add_note(note)


_FILE: Final = re.compile(r'"([^"]+)":(\d+):')


def _operations(op: Any) -> Iterator[Any]:
    yield op
    for block in _blocks(op.regions):
        for inner in block.operations:
            yield from _operations(inner.operation)


def hlo_text(module: Any, metadata: bool) -> str:
    """The text of an HLO module."""
    options = _hlo.HloPrintOptions()
    options.print_metadata = metadata
    return module.to_string(options)
