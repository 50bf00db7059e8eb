"""``debug.breakpoint``: stop a running function and inspect the variables of its callers."""

from __future__ import annotations

import cmd
import linecache
import pprint
import sys
import types
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from primax_core import tree_util
from primax_core.debug import callback
from primax_core.extend import is_internal_code
from primax_core.extend.runtime import api_boundary
from primax_core.extend.traces import Tracer
from primax_core.typing import PyTree

_CONTEXT: Final = 5
_CLI: Final = "cli"
_TRACED: Final = object()


class Frame(NamedTuple):
    """A calling function of the breakpoint, and its variables."""

    file: str
    line: int
    function: str
    variables: dict[str, Any]
    globals: dict[str, Any]


@api_boundary
def breakpoint(
    *,
    backend: str | None = None,
    filter_frames: bool = True,
    num_frames: int | None = None,
    ordered: bool = False,
    token: PyTree = None,
    **kwargs: Any,
) -> Any:
    """Stop at this point of the execution, with a command line in the terminal.

    Shows the local variables of the calling functions, with the values of arrays at this point,
    also in compiled functions. ``help`` lists the commands; ``c`` continues, ``q`` stops the
    function with an error.

    Args:
      backend: ``"cli"``, the only backend.
      filter_frames: leave out the library's own frames.
      num_frames: maximum number of frames; the innermost ones.
      ordered: stop in program order.
      token: returned unchanged, so that other values can depend on the breakpoint.
      kwargs: ``stdin`` and ``stdout``, the files of the command line.

    Raises:
      ValueError: for an unknown backend.
      JaxRuntimeError: if the function is stopped with ``q``; raised where a result is waited for.
    """
    if backend not in (None, _CLI):
        raise ValueError(f"the only backend of debug.breakpoint is {_CLI!r}, got {backend!r}")
    unknown = set(kwargs) - {"stdin", "stdout"}
    if unknown:
        raise TypeError(f"debug.breakpoint does not take {', '.join(sorted(unknown))}")
    frames = _frames(filter_frames, num_frames)
    traced, shapes = [], []
    for frame in frames:
        leaves, tree = _flatten(frame.variables)
        traced.extend(x for x in leaves if isinstance(x, Tracer))
        shapes.append((tree, [_TRACED if isinstance(x, Tracer) else x for x in leaves]))
    frames = [f._replace(variables={}) for f in frames]

    def stop(*values: Any) -> None:
        remaining = iter(values)
        filled = [
            f._replace(
                variables=tree_util.tree_unflatten(
                    tree, [next(remaining) if x is _TRACED else x for x in leaves]
                )
            )
            for f, (tree, leaves) in zip(frames, shapes)
        ]
        Console(filled, **kwargs).run()

    callback(stop, *traced, ordered=ordered)
    return token


def _flatten(variables: dict[str, Any]) -> tuple[list[Any], Any]:
    return tree_util.tree_flatten({k: v if _is_tree(v) else repr(v) for k, v in variables.items()})


def _is_tree(value: Any) -> bool:
    try:
        tree_util.tree_flatten(value)
    except Exception:  # a user's registration may fail, keys may be unsortable
        return False
    return True


def _frames(filtered: bool, count: int | None) -> list[Frame]:
    """The frames of the caller, outermost first."""
    frames: list[Frame] = []
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None and is_internal_code(frame.f_code):
        frame = frame.f_back
    while frame is not None and (count is None or len(frames) < count):
        if not (filtered and is_internal_code(frame.f_code)):
            # A module's variables are its globals, which need no copy.
            own = {} if frame.f_locals is frame.f_globals else dict(frame.f_locals)
            frames.append(
                Frame(
                    frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name, own,
                    frame.f_globals,
                )
            )  # fmt: skip
        frame = frame.f_back
    return frames[::-1]


class _Ended(Exception):
    """The user stopped the function at a breakpoint."""


class Console(cmd.Cmd):
    """The command line of a breakpoint."""

    prompt = "(primax) "
    doc_header = "Commands (help <command> shows more):"

    def __init__(self, frames: Sequence[Frame], stdin: Any = None, stdout: Any = None):
        super().__init__(stdin=stdin, stdout=stdout)
        self.use_rawinput = stdin is None
        self.frames = frames
        self.at = len(frames) - 1

    def run(self) -> None:
        """Read and execute commands until the user continues."""
        self._show_location()
        try:
            self.cmdloop()
        except KeyboardInterrupt:
            raise _Ended("interrupted at debug.breakpoint") from None

    def _say(self, text: str) -> None:
        self.stdout.write(text + "\n")
        self.stdout.flush()

    @property
    def frame(self) -> Frame:
        """The current frame of the commands."""
        return self.frames[self.at]

    def _show_location(self) -> None:
        f = self.frame
        self._say(f"> {f.file}({f.line}) in {f.function}")
        self._say(f"-> {linecache.getline(f.file, f.line).strip()}")

    def _value(self, expression: str) -> Any:
        return eval(expression, self.frame.globals, dict(self.frame.variables))

    def _try(self, expression: str, show: Any) -> None:
        try:
            self._say(show(self._value(expression)))
        except Exception as e:
            self._say(f"{type(e).__name__}: {e}")

    def default(self, line: str) -> None:
        """Any other input is an expression."""
        self.do_p(line)

    def emptyline(self) -> bool:
        """An empty line does nothing."""
        return False

    def do_p(self, arg: str) -> None:
        """p expression: print the value of an expression of the frame's variables."""
        self._try(arg, repr)

    def do_pp(self, arg: str) -> None:
        """pp expression: print a value over several lines."""
        self._try(arg, pprint.pformat)

    def do_a(self, arg: str) -> None:
        """a: print the variables of the frame."""
        for name, value in self.frame.variables.items():
            self._say(f"{name} = {value!r}")

    do_vars = do_args = do_a

    def do_l(self, arg: str) -> None:
        """l: print the source lines around the current line."""
        f = self.frame
        for n in range(max(1, f.line - _CONTEXT), f.line + _CONTEXT + 1):
            text = linecache.getline(f.file, n)
            if text:
                self._say(f"{'->' if n == f.line else '  '} {n:4} {text.rstrip()}")

    do_list = do_l

    def do_bt(self, arg: str) -> None:
        """bt: print all frames, the innermost last."""
        for i, f in enumerate(self.frames):
            mark = ">" if i == self.at else " "
            self._say(f"{mark} {f.file}({f.line}) in {f.function}")

    do_where = do_w = do_bt

    def do_u(self, arg: str) -> None:
        """u: go to the frame of the caller."""
        self._go(self.at - 1, "outermost")

    do_up = do_u

    def do_d(self, arg: str) -> None:
        """d: go to the frame of the called function."""
        self._go(self.at + 1, "innermost")

    do_down = do_d

    def _go(self, to: int, end: str) -> None:
        if 0 <= to < len(self.frames):
            self.at = to
            self._show_location()
        else:
            self._say(f"this is the {end} frame")

    def do_c(self, arg: str) -> bool:
        """c: continue."""
        return True

    do_continue = do_cont = do_c

    def do_q(self, arg: str) -> None:
        """q: stop the function with an error."""
        raise _Ended("the function was stopped at debug.breakpoint")

    do_quit = do_exit = do_q

    def do_EOF(self, arg: str) -> bool:
        """End of the input: continue."""
        return True
