"""Metadata for XLA: frontend attributes of operations."""

from __future__ import annotations

import functools as _functools
from collections.abc import Callable as _Callable
from contextlib import ContextDecorator as _ContextDecorator
from typing import Any

import primax_core as _core
from primax_core import extend as _extend
from primax_core.extend import facade as _facade, runtime as _runtime, traces as _traces
from primax_core.typing import PyTree as _PyTree

__all__ = [
    "fuse_limit",
    "must_fuse_call",
    "set_xla_metadata",
    "xla_metadata_call",
    "xla_metadata_call2",
]

# Jaxprs and executables of functions that are called in a context differ from others.
_option = _runtime.define_option(
    "xla_metadata", object, (), "trace", "frontend attributes of traced operations"
)


def set_xla_metadata(x: _PyTree = None, **kwargs: Any) -> Any:
    """Attach metadata to operations, which XLA and its tools can read.

    Args:
      x: a pytree of arrays: the metadata belong to the operations that compute them. Without it,
        the result is a context manager, also usable as a decorator: the metadata belong to all
        operations that are traced within.
      kwargs: names and values; ``None`` removes the metadata of an outer context.

    The metadata are ``mhlo.frontend_attributes`` of the lowered module. They do not change values.

    >>> import primax
    >>> def f(x):
    ...     with set_xla_metadata(group="a"):
    ...         return primax.lax.sin(x)
    >>> 'group = "a"' in primax.jit(f).lower(1.0).as_text()
    True
    """
    if x is None:
        return XlaMetadataContextManager(kwargs)
    items = _items(kwargs)
    return _core.tree.map(lambda leaf: _attach(leaf, items), x) if items else x


class XlaMetadataContextManager(_ContextDecorator):
    """Context in which traced operations get metadata."""

    def __init__(self, metadata: dict[str, Any]):
        self._metadata = metadata
        self._contexts: list[tuple[Any, Any]] = []

    def _recreate_cm(self) -> XlaMetadataContextManager:
        return XlaMetadataContextManager(self._metadata)

    def __call__(self, func: _Callable[..., Any]) -> Any:
        """The function in this context, with the methods of a compiled function, if it is one."""
        wrapped = super().__call__(func)
        for name in ("eval_shape", "lower", "trace"):
            if hasattr(func, name):
                setattr(wrapped, name, super().__call__(getattr(func, name)))
        return wrapped

    def __enter__(self) -> None:
        items = _items(self._metadata)
        option, scope = _option((*_option.value, *items)), _scope(items)
        self._contexts.append((option, scope))
        option.__enter__()
        scope.__enter__()

    def __exit__(self, *exc: Any) -> None:
        option, scope = self._contexts.pop()
        scope.__exit__(*exc)
        option.__exit__(*exc)


def xla_metadata_call(f: _Callable[..., Any] | None = None, /, **meta: Any) -> Any:
    """A function that is one call in the lowered module, with metadata; or a decorator.

    >>> import primax
    >>> @xla_metadata_call(inlineable="false")
    ... def f(x):
    ...     return primax.lax.sin(x) * 2
    >>> "call @xla_metadata_call" in primax.jit(f).lower(1.0).as_text()
    True
    """
    if f is None:
        return lambda fun: xla_metadata_call(fun, **meta)
    fun, items = f, _items(meta)

    @_functools.wraps(fun)
    def xla_metadata_call_(*args: Any, **kwargs: Any) -> Any:
        return fun(*args, **kwargs)

    xla_metadata_call_.__name__ = "xla_metadata_call"
    compiled = _core.jit(xla_metadata_call_)

    @_functools.wraps(fun)
    def call(*args: Any, **kwargs: Any) -> Any:
        with _scope(items, inner=False):
            return compiled(*args, **kwargs)

    return call


def xla_metadata_call2(
    f: _Callable[..., Any] | None = None,
    /,
    metadata: dict[str, Any] | None = None,
    *,
    ad_metadata: str | dict[str, Any] = "same",
) -> Any:
    """:func:`xla_metadata_call` with other metadata of the linear part of derivatives.

    Args:
      metadata: names and values.
      ad_metadata: those of the call that maps tangents or cotangents after ``linearize``, in
        reverse mode in particular: ``"same"``, ``"drop"`` for none, or names and values.

    >>> import primax
    >>> f = xla_metadata_call2(primax.lax.sin, {"tag": "x"}, ad_metadata={"tag": "y"})
    >>> text = primax.jit(primax.grad(f)).lower(1.0).as_text()
    >>> text.count('{tag = "x"}'), text.count('{tag = "y"}')
    (1, 1)
    """
    if f is None:
        return lambda fun: xla_metadata_call2(fun, metadata, ad_metadata=ad_metadata)
    if isinstance(ad_metadata, str) and ad_metadata not in ("same", "drop"):
        raise ValueError(f"ad_metadata must be 'same', 'drop' or a dict, got {ad_metadata!r}")
    fun, items = f, _items(metadata or {})
    named = {"same": items, "drop": ()}
    linear = named[ad_metadata] if isinstance(ad_metadata, str) else _items(ad_metadata)

    @_functools.wraps(fun)
    def call(*args: Any, **kwargs: Any) -> Any:
        traced = _traces.trace_function(fun, args, kwargs, "xla_metadata_call")
        operands = [*traced.consts, *_core.tree.leaves((args, kwargs))]
        outs = xla_metadata_call_p.bind(
            *operands, jaxpr=traced.jaxpr, xla_metadata=items, ad_metadata=linear
        )
        return _core.tree.unflatten(traced.out_tree, outs)

    return call


xla_metadata_call_p: _extend.Primitive = _extend.Primitive(
    "xla_metadata_call", multiple_results=True
)


@xla_metadata_call_p.rule(_extend.abstract)
def _call_abstract(*avals: Any, jaxpr: Any, **_: Any) -> Any:
    return jaxpr.out_avals


@xla_metadata_call_p.rule(_extend.expand)
def _call_expand(*args: Any, jaxpr: Any, xla_metadata: Any, **_: Any) -> Any:
    def xla_metadata_call(*args: Any) -> Any:
        return _extend.eval_jaxpr(jaxpr, args)

    with _scope(xla_metadata, inner=False):
        return _core.jit(xla_metadata_call)(*args)


@xla_metadata_call_p.rule(_extend.linearize)
def _call_linearize(
    primals: Any, mask: Any, *, jaxpr: Any, xla_metadata: Any, ad_metadata: Any
) -> Any:
    derived = _extend.linearize_jaxpr(jaxpr, mask)
    results = _call_expand(*primals, jaxpr=derived.forward, xla_metadata=xla_metadata)
    tangents = [_extend.typeof(x).tangent_aval() for x, m in zip(primals, mask) if m]

    def linear(*dots: Any) -> Any:
        if derived.linear is None:
            return []
        return xla_metadata_call_p.bind(
            *derived.residual_values(primals, results), *dots,
            jaxpr=derived.linear, xla_metadata=ad_metadata, ad_metadata=ad_metadata,
        )  # fmt: skip

    return results[: derived.n_outs], _extend.stage(linear, tangents), derived.out_mask


def must_fuse_call(identifier: str) -> _Callable[[_Callable[..., Any]], Any]:
    """A decorator of functions whose operations XLA has to compile into one fusion.

    The call has the metadata ``MUST_FUSE``. Backends that know them, such as XLA's for TPUs, fail
    to compile what they cannot fuse; others ignore them.

    Args:
      identifier: the name of the fusion.

    >>> import primax
    >>> product = must_fuse_call("1")(lambda x: primax.lax.sin(x) * 2)
    >>> 'MUST_FUSE = "1"' in primax.jit(product).lower(1.0).as_text()
    True
    """
    return lambda fun: xla_metadata_call(fun, MUST_FUSE=identifier)


def fuse_limit() -> XlaMetadataContextManager:
    """A context whose operations have the metadata ``FUSE_LIMIT``: a boundary of fusions.

    Backends that know them do not fuse operations within with operations outside.

    >>> import primax
    >>> def f(x):
    ...     with fuse_limit():
    ...         return primax.lax.sin(x)
    >>> 'FUSE_LIMIT = "true"' in primax.jit(f).lower(1.0).as_text()
    True
    """
    return XlaMetadataContextManager({"FUSE_LIMIT": True})


def _items(metadata: dict[str, Any]) -> tuple[tuple[str, str | None], ...]:
    return tuple((name, _text(value)) for name, value in sorted(metadata.items()))


def _text(value: Any) -> str | None:
    return str(value).lower() if isinstance(value, bool) else None if value is None else str(value)


def _scope(items: tuple[tuple[str, str | None], ...], inner: bool = True) -> Any:
    return _core.named_scope(_facade.Attributes(items, inner))


xla_metadata_value_p: _extend.Primitive = _extend.Primitive("xla_metadata_value")


def _attach(x: Any, items: tuple[tuple[str, str | None], ...]) -> Any:
    _extend.typeof(x)  # raises for other objects
    if not isinstance(x, _extend.Tracer):
        return x
    return xla_metadata_value_p.bind(x, xla_metadata_kvs=items)


@xla_metadata_value_p.rule(_extend.abstract)
def _abstract(x: Any, *, xla_metadata_kvs: Any) -> Any:
    return x


@xla_metadata_value_p.rule(_extend.lower)
def _lower(ctx: Any, x: Any, *, xla_metadata_kvs: Any) -> Any:
    from primax_core.extend.lowering import ir

    op = x.owner
    if isinstance(op, ir.Block) or op.name == "stablehlo.constant":
        return x  # an argument has no operation
    op = op.operation
    name = "mhlo.frontend_attributes"
    texts = {e.name: e.attr for e in op.attributes[name]} if name in op.attributes else {}
    new = {k: ir.StringAttr.get(v) for k, v in xla_metadata_kvs if v is not None}
    op.attributes[name] = ir.DictAttr.get({**texts, **new})
    return x


@xla_metadata_value_p.rule(_extend.jvp)
def _jvp(primals: Any, tangents: Any, **params: Any) -> Any:
    return xla_metadata_value_p.bind(*primals, **params), tangents[0]


@xla_metadata_value_p.rule(_extend.batch)
def _batch(axis: Any, args: Any, dims: Any, **params: Any) -> Any:
    return xla_metadata_value_p.bind(*args, **params), dims[0]


@xla_metadata_value_p.rule(_extend.transpose)
def _transpose(ct: Any, x: Any, **params: Any) -> Any:
    return [ct]
