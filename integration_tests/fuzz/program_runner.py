"""Runs programs in Primax or in the reference.

As a process, ``python program_runner.py jax``, it reads requests as lines of JSON from its standard
input, and answers each with a line. It imports nothing of Primax then.
"""

from __future__ import annotations

import base64
import json
import os
import sys
import warnings
from typing import Any

import numpy as np


def run(source: str, modes: dict[str, str], disturb: float = 0.0) -> dict[str, Any]:
    """The results of a program in several modes, or the error of each.

    Args:
      disturb: relative change of the inputs, by which ill-conditioned programs are recognised.
    """
    namespace: dict[str, Any] = {}
    answers: dict[str, Any] = {}
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            exec(compile(source, "<program>", "exec"), namespace)
            if disturb:
                namespace["inputs"] = tuple(
                    _moved(np.asarray(x), disturb) for x in namespace["inputs"]
                )
                after = source[source.rindex("\ninputs = tuple(") :]
                exec(compile(after, "<program>", "exec"), namespace)
        except Exception as e:
            return dict.fromkeys(modes, _error(e))
        jax = namespace["jax"]
        for name, expression in modes.items():
            try:
                value = eval(expression, namespace)
                answers[name] = {"leaves": [_leaf(x) for x in jax.tree.leaves(value)]}
            except Exception as e:
                answers[name] = _error(e)
    return answers


def _moved(x: np.ndarray, by: float) -> np.ndarray:
    if x.dtype.kind not in "fc" and x.dtype.name != "bfloat16":
        return x
    signs = np.where(np.arange(x.size) % 2, 1.0, -0.7).reshape(x.shape)
    if x.dtype.name in ("bfloat16", "float16"):
        by = 4e-3
    wide = x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)
    return (wide + (np.abs(wide) + 0.1) * signs * by).astype(x.dtype)


def _error(e: Exception) -> dict[str, str]:
    return {"error": f"{type(e).__name__}: {str(e)[:300]}"}


def _leaf(x: Any) -> dict[str, Any]:
    weak = bool(getattr(getattr(x, "aval", x), "weak_type", False))
    if str(getattr(x, "dtype", "")).startswith("key<"):
        raise TypeError("a key is no number")
    value = np.asarray(x)
    name = value.dtype.name
    if value.dtype.kind == "V" and name == "void":
        name, value = "float0", np.zeros(value.shape, bool)
    elif name == "bfloat16":
        value = value.astype(np.float32)
    data = base64.b64encode(np.ascontiguousarray(value).tobytes()).decode()
    return {
        "shape": list(value.shape),
        "dtype": name,
        "kind": value.dtype.str,
        "weak": weak,
        "data": data,
    }


def main(package: str) -> None:
    """Answer requests until the input ends."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what programs print does not reach the pipe
    __import__(package)
    for line in sys.stdin:
        request = json.loads(line)
        answer = run(request["source"], request["modes"], request.get("disturb", 0.0))
        print(json.dumps(answer), file=out, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
