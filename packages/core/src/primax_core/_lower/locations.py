"""Source locations and names of the operations of a lowered module.

Lowering writes a module without locations: its bytecode is the key of the caches, so equal programs
from different lines share an executable. What it records besides is a trail: for each equation, the
value that its rule returned. :func:`locate` turns the trail into MLIR locations when they are
needed: for a compilation, which is much slower, and for text.

The name of an operation is ``jit(f)/scope/sin``. Operations of private functions have names
relative to the call, because XLA prepends the name of the call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from .._base import pytree, source
from .._ir.jaxpr import jaxprs_in
from .._ir.name_stack import joined, without_transforms
from .context import context, ir

# The reference's names of the regions of loops and conditionals.
_REGIONS: Final[dict[str, tuple[str, Callable[[int], str]]]] = {
    "stablehlo.while": ("while", lambda i: ("cond", "body")[i]),
    "stablehlo.case": ("cond", lambda i: f"branch_{i}_fun"),
    "stablehlo.if": ("cond", lambda i: f"branch_{1 - i}_fun"),
}
_CHECKPOINTS: Final = ("checkpoint", "remat2", "remat")


class Record:
    """One lowered equation: its position among other equations, and what its rule returned.

    Attributes:
      eqn: the equation; ``None`` for the body of a private function.
      parent: the record of the equation that contains it, or ``None``.
      located: the source location of the equation is that of the operation; a jaxpr of the library
        has the location of its call.
      out: a value or several.
    """

    __slots__ = ("eqn", "parent", "located", "out")

    def __init__(self, eqn: Any, parent: Record | None, located: bool):
        self.eqn = eqn
        self.parent = parent
        self.located = located
        self.out: Any = None


def scopes_of(trail: Sequence[Record]) -> bytes:
    """The named scopes of a module, for its digest; empty without named scopes."""
    scopes = []
    for i, record in enumerate(trail):
        if record.eqn.ctx:
            names = without_transforms(record.eqn.ctx)
            if names:
                scopes.append((i, names))
    return repr(scopes).encode() if scopes else b""


def locate(module: Any, trail: Sequence[Record], name: str, arg_names: Sequence[Any]) -> None:
    """Set the locations of a module's operations and of the arguments of ``main``.

    Args:
      name: the name of the function, ``f`` in ``jit(f)/sin``.
      arg_names: the name of each argument of ``main``, or ``None``.
    """
    with context:
        owners: dict[Any, Record] = {}
        for record in trail:
            outs = record.out
            for value in (outs,) if isinstance(outs, ir.Value) else outs or ():
                if isinstance(value, ir.OpResult):
                    owners.setdefault(value.owner.operation, record)
        writer = _Writer(owners)
        for function in module.body.operations:
            is_main = function.operation.attributes["sym_name"].value == "main"
            prefix = (f"jit({name})",) if is_main else ()
            for region in function.operation.regions:
                for block in region.blocks:
                    writer.block(block, prefix, None)
            if is_main:
                arguments = function.operation.regions[0].blocks[0].arguments
                for argument, text in zip(arguments, arg_names):
                    if text:
                        argument.set_location(ir.Location.name(text))


def name_results(module: Any, out_tree: Any, count: int) -> None:
    """Set ``jax.result_info`` of the results of ``main``: their positions in the output tree.

    Results that precede those of the tree, such as new contents of references, have no name.
    """
    with context:
        main = next(
            f for f in module.body.operations if f.operation.attributes["sym_name"].value == "main"
        )
        attributes = main.operation.attributes
        n = len(main.type.results)
        paths = pytree.tree_flatten_with_path(pytree.tree_unflatten(out_tree, range(count)))[0]
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

    def block(self, block: Any, prefix: tuple[str, ...], owner: Record | None) -> None:
        """Locate the operations of a block.

        Args:
          prefix: the scopes of the block.
          owner: the record of the operation that the block is a region of.
        """
        record = None
        # The value of an equation is the result of its last operation.
        for op in reversed([op.operation for op in block.operations]):
            record = self.owners.get(op, record)
            location = self.location(prefix, record, owner)
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
                    location = self.named(joined(scopes), _source(record))
                    for i, region in enumerate(regions):
                        for inner in region.blocks:
                            self.block(inner, (*scopes, names[1](i)), record)
            if op.location == self.unknown:
                op.location = location

    def whole(self, block: Any, location: Any) -> None:
        """Give all operations of a block one location."""
        for op in block.operations:
            op.operation.location = location
            for inner in _blocks(op.operation.regions):
                self.whole(inner, location)

    def location(self, prefix: tuple[str, ...], record: Record | None, owner: Record | None) -> Any:
        """The location of the operations of an equation."""
        if record is None:
            name, at = (joined(prefix), _source(owner)) if prefix else ("", None)
        else:
            name, at = _name(prefix, record, owner), _source(record)
        return self.named(name, at)

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
            found = source.locate(at)
            line = ir.Location.file(
                found.file, found.line, max(found.column - 1, 0), found.end_line,
                max(found.end_column - 1, 0),
            )  # fmt: skip
            known = self.files[at] = ir.Location.name(found.function, line)
        return known


def _blocks(regions: Any) -> Iterator[Any]:
    for region in regions:
        yield from region.blocks


def _scopes(record: Record, owner: Record | None) -> tuple[str, ...]:
    """The scopes around an equation, inside of ``owner``."""
    parent = record.parent
    scopes: tuple[str, ...] = ()
    if parent is not None and parent is not owner and parent.eqn is not None:
        scopes = _scopes(parent, owner)
        if parent.eqn.primitive.name in _CHECKPOINTS:
            scopes += ("", "checkpoint")
    return scopes + record.eqn.ctx


def _name(prefix: tuple[str, ...], record: Record, owner: Record | None) -> str:
    parent = record.parent
    while not record.located and parent is not None and parent is not owner:
        if parent.eqn is None or jaxprs_in(parent.eqn.params):
            break
        record, parent = parent, parent.parent  # an operation of the expansion of a primitive
    eqn = record.eqn
    scopes = prefix + _scopes(record, owner)
    if eqn.primitive.name == "jit":
        return joined((*scopes, f"jit({eqn.params.get('name', 'fn')})"))
    outer = joined(scopes)
    return f"{outer}/{eqn.primitive.name}" if outer else eqn.primitive.name


def _source(record: Record | None) -> source.Source | None:
    """The innermost known location in user code."""
    while record is not None:
        if record.located and record.eqn is not None and record.eqn.source:
            return tuple(record.eqn.source)  # type: ignore[return-value]
        record = record.parent
    return None


def note_position(error: Exception, record: Record) -> None:
    """Add the equation and its source location to an error of its lowering rule."""
    text = "The error occurred while lowering "
    notes = getattr(error, "__notes__", ())
    if not any(note.startswith(text) for note in notes):
        at = _source(record)
        where = f", traced on line {source.summarize(at)}" if at else ""
        error.add_note(f"{text}{record.eqn.primitive.name}{where}.")
