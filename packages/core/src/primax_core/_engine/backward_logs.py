"""Logs of backward rules: values that leave the backward pass beside the cotangents."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from .._base.config import state
from .._ir.jaxpr import Eqn, Jaxpr, jaxprs_in
from .._ir.primitive import expand
from .._trace.interpret import apply_equation, interpret
from .._trace.staging import stage
from .custom_vjp import custom_lin_p

_thread = threading.local()


class LoggedCotangents(list[Any]):
    """The cotangents of a backward rule, with its logs."""

    __slots__ = ("logs",)

    def __init__(self, cotangents: Sequence[Any], logs: dict[str, Any]):
        super().__init__(cotangents)
        self.logs: dict[str, Any] = logs

    def replaced(self, cotangents: Sequence[Any]) -> LoggedCotangents:
        """Other cotangents with the same logs."""
        return LoggedCotangents(cotangents, self.logs)

    def record(self) -> None:
        """Add the logs to those that are collected under the current trace."""
        collection = getattr(_thread, "collection", None)
        if collection is not None and collection.trace is state.trace:
            collection.add(self.logs)


class collecting:
    """Context manager that collects the logs of backward rules that run under the current trace."""

    def __enter__(self) -> collecting:
        self.trace = state.trace
        self.logs: dict[str, Any] = {}
        self._outer = getattr(_thread, "collection", None)
        _thread.collection = self
        return self

    def add(self, logs: dict[str, Any]) -> None:
        """Add the logs of one rule.

        Raises:
          ValueError: if one of the keys has a value already.
        """
        repeated = sorted(self.logs.keys() & logs.keys(), key=str)
        if repeated:
            raise ValueError(
                f"the log key {repeated[0]!r} is used twice in one backward pass: each call of a "
                "function with logs needs its own keys, which a nondifferentiable argument can give"
            )
        self.logs.update(logs)

    def __exit__(self, *exc: object) -> None:
        _thread.collection = self._outer


def checked_logs(result: Any, rule: str) -> tuple[Any, dict[str, Any]]:
    """The cotangents and the logs that a backward rule returned.

    Raises:
      TypeError: if the result is no pair, or the logs are no dict.
    """
    if not isinstance(result, (tuple, list)) or len(result) != 2:
        raise TypeError(
            f"the bwd rule {rule} must return a pair (cotangents, logs), because it was defined "
            f"with logs, but it returned {result!r}"
        )
    cts, logs = result
    if logs is not None and not isinstance(logs, dict):
        raise TypeError(
            f"the logs that the bwd rule {rule} returns must be a dict of pytrees or None, but "
            f"got {logs!r}"
        )
    return cts, logs or {}


def has_logs(jaxpr: Jaxpr) -> bool:
    """Return True if a linear jaxpr calls a backward rule with logs."""
    return any(_logs(eqn) for eqn in jaxpr.eqns)


def _logs(eqn: Eqn) -> bool:
    if eqn.primitive is custom_lin_p:
        return getattr(eqn.params["bwd"], "logs", False)
    return any(map(has_logs, jaxprs_in(eqn.params)))


def inlined(jaxpr: Jaxpr) -> Jaxpr:
    """A jaxpr in which calls of backward rules with logs are not within other calls.

    Raises:
      NotImplementedError: for calls within loops and branches.
    """

    def step(eqn: Eqn, values: list[Any]) -> Sequence[Any]:
        if eqn.primitive is custom_lin_p or not _logs(eqn):
            return apply_equation(eqn, values)
        rule: Callable[..., Any] | None = eqn.primitive.rules.get(expand)
        bodies = list(jaxprs_in(eqn.params))
        if rule is None or len(bodies) != 1:
            raise NotImplementedError(
                f"logs of a backward rule cannot leave {eqn.primitive.name}: return them from the "
                "backward pass of the body"
            )
        return interpret(bodies[0], values, step)

    avals = [v.aval for v in jaxpr.invars]
    return stage(lambda *args: interpret(jaxpr, args, step), avals, jaxpr.debug_info)
