"""``check_kernel``: the kernels of a function evaluated step by step, with all faults found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from primax_core import dtypes, make_jaxpr, tree_util
from primax_core.extend import Eqn, Jaxpr, interpret, run_jaxprs, typeof

from ._call import traced_form
from ._checking import Faults, check_steps
from ._debugging import KernelCheckError
from ._kernel import Kernel
from ._linear_calls import body_of_linear_call
from ._primitive import pallas_call_p


@dataclass(frozen=True)
class KernelCheck:
    """Findings of `check_kernel`: true if there are none.

    Attributes:
      findings: the faults, each with the step, the reference, the element and the line.
      kernels: names of the kernels that were checked, one for each call.
    """

    findings: tuple[str, ...]
    kernels: tuple[str, ...]

    def __bool__(self) -> bool:
        return not self.findings

    def raise_first(self) -> None:
        """Raise the first finding.

        Raises:
          KernelCheckError: if there is one.
        """
        if self.findings:
            raise KernelCheckError(self.findings[0])

    def __str__(self) -> str:
        count = f"{len(self.findings)} finding{'s' * (len(self.findings) != 1)}"
        return "\n".join([f"{count} in {', '.join(self.kernels)}", *self.findings])

    __repr__ = __str__


def check_kernel(fun: Callable[..., Any], *args: Any, seed: int = 0) -> KernelCheck:
    """Evaluate the kernels of a function step by step, and collect all faults.

    Faults are those of ``interpret="check"``, one for each line of the kernel and kind of access,
    and results that depend on the elements of blocks outside of an array.

    Args:
      fun: what `pallas_call` returns, or a function of arrays that calls kernels.
      args: its arguments, or their shapes and dtypes (``ShapeDtypeStruct``), in whose place
        there are random numbers: normally distributed, or 0 and 1 for integers. Pass arrays
        where values matter, as for prefetched scalars.
      seed: of the random numbers.

    Raises:
      ValueError: if ``fun`` calls no kernel.
      NotImplementedError: for a kernel whose grid has a computed size.
      The errors of tracing ``fun``.

    >>> from primax_core import ShapeDtypeStruct, ds
    >>> from primax_kernels import BlockSpec, pallas_call, program_id
    >>> def shift(x, out):
    ...     out[...] = x[ds(program_id(0) * 4 + 1, 4)]
    >>> x = ShapeDtypeStruct((8,), np.float32)
    >>> call = pallas_call(shift, x, grid=2, out_specs=BlockSpec((4,), lambda i: (i,)))
    >>> len(check_kernel(call, x).findings)
    1
    """
    fun = traced_form(fun)
    rng = np.random.default_rng(seed)
    jaxpr = make_jaxpr(fun)(*args)
    leaves = [_values(x, rng) for x in tree_util.tree_leaves(args)]
    check = _Check()
    check.run(jaxpr, leaves)
    if not check.kernels:
        raise ValueError("check_kernel: the function calls no kernel")
    return KernelCheck(tuple(check.findings), tuple(check.kernels))


def _values(x: Any, rng: np.random.Generator) -> Any:
    """An argument, or random numbers of its shape and dtype."""
    if not (hasattr(x, "shape") and hasattr(x, "dtype")) or hasattr(x, "__array__"):
        return x
    dtype, shape = typeof(x).dtype, tuple(x.shape)
    if dtypes.issubdtype(dtype, dtypes.extended):
        raise TypeError(f"check_kernel takes random keys as arrays, not as {x}")
    if dtypes.issubdtype(dtype, np.complexfloating):
        return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)
    if dtypes.issubdtype(dtype, np.inexact):
        return rng.standard_normal(shape).astype(dtype)
    return rng.integers(0, 2, shape).astype(dtype)


class _Check:
    """Evaluation of a jaxpr, whose kernels run step by step."""

    def __init__(self) -> None:
        self.findings: list[str] = []
        self.kernels: list[str] = []

    def run(self, jaxpr: Jaxpr, args: Sequence[Any]) -> list[Any]:
        """The results of a jaxpr."""
        return interpret(jaxpr, args, self.apply)

    def apply(self, eqn: Eqn, values: list[Any]) -> Sequence[Any]:
        """The results of an equation."""
        if eqn.primitive is pallas_call_p:
            return self.kernel(eqn.params["kernel"], values)
        rule = eqn.primitive.rules.get(run_jaxprs)
        if rule is not None:
            results = rule(self.run, values, **eqn.params)
            if results is not None:
                return list(results)
        body = body_of_linear_call(eqn, values)
        if body is not None:
            return self.run(*body)
        results = eqn.primitive.bind(*values, **eqn.params)
        return list(results) if eqn.primitive.multiple_results else [results]

    def kernel(self, kernel: Kernel, args: Sequence[Any]) -> Sequence[Any]:
        """The results of a kernel."""
        self.kernels.append(kernel.name)
        if kernel.dynamic:
            raise NotImplementedError(
                f"check_kernel: the kernel {kernel.source} has a grid of computed size: pass "
                "integers"
            )
        faults = Faults(collect=True)
        args = [np.asarray(x.scalar if hasattr(x, "scalar") else x) for x in args]
        results = check_steps(kernel, args, faults=faults)
        self.findings += faults.messages.values()
        if any(any(margin) for m in kernel.inputs for margin in m.margins):
            others = check_steps(kernel, args, faults=Faults(collect=True), outside=1)
            for o, (a, b) in enumerate(zip(results, others)):
                self.compare(kernel, o, np.asarray(a), np.asarray(b))
        return results

    def compare(self, kernel: Kernel, o: int, a: np.ndarray, b: np.ndarray) -> None:
        """Add a finding if two results differ, of which one had other padding."""
        differ = np.frombuffer(a.tobytes(), np.uint8) != np.frombuffer(b.tobytes(), np.uint8)
        if differ.any():
            first = int(np.argmax(differ)) // a.dtype.itemsize
            element = tuple(int(i) for i in np.unravel_index(first, a.shape))
            self.findings.append(
                f"element {element} of result {o} of the kernel {kernel.source} depends on "
                "elements of an operand's blocks outside of the array: select with a comparison "
                "of positions before they are used"
            )
