"""Differences from the reference that the comparisons expect, for ``tools/differences_page.py``.

The cases of the wheels' tables have their own reasons (``Case.differs``).
"""

from __future__ import annotations

from typing import Final

EXPLICIT_AXES_ACCEPTED: Final = {
    "values that are replicated are neutral, as NumPy arrays are": (
        "elementwise select_replicated_which",
        "elementwise select_replicated_case",
        "elementwise select_different",
        "dot batch_replicated",
        "concatenate mixed",
        "concatenate replicated_first",
        "concatenate mixed_free",
        "concatenate different",
        "cumulative sort_mixed",
        "slice update",
        "slice update_replicated",
        "linalg triangular_one",
        "vmap two_different",
        "control while_carry",
        "control cond_branches",
        "control cond_zero",
    ),
    "the reference's own functions refuse the types of values in them": (
        "unary lgamma",
        "binary igamma",
        "binary igamma partly",
        "elementwise betainc",
        "elementwise gamma_grad",
        "cumulative max_grad",
        "linalg cholesky",
        "linalg qr",
        "linalg inv",
        "linalg triangular_grad",
        "grad max replicated",
        "grad max partly",
        "grad min replicated",
        "grad min partly",
        "vmap scan",
        "permute roll",
        "index slice_divided",
    ),
    "the type of the result follows from Shardy's rule": (
        "dot ragged",
        "reshape A 2,4,4,4",
        "reshape X 2,4,4,4",
        "reshape Y 2,4,4,4",
        "index embedding_plain",
        "index embedding_divided",
        "index take",
        "index take_grad",
        "grad embed",
        "window conv_kernel",
    ),
}
"""Programs that the reference refuses and that have types here, by the reason."""

EXPLICIT_AXES_DIFFERENT: Final = {
    "create asarray_out": "the reference ignores out_sharding of asarray",
}
"""Programs whose types differ, with the reason."""

_MORE: Final = "it can be computed, and the reference refuses"
SYMBOLIC_SHAPES: Final = {
    "squeeze": _MORE, "cov": _MORE, "conv grads": _MORE, "dim**.5": _MORE,
    "idx dim-1": "dimensions are positions too",
    "pad reflect": "the comparison that is not decided is named",
    "convolve": "the comparison that is not decided is named",
    "convolve same": "the comparison that is not decided is named",
    "slice start dim": "the same size, as another expression",
    "iter": "the reference fails inside", "permutation": "what is not decided is named",
    "perm n": "the size is not an integer", "choice": "the size is not an integer",
    "grad cumprod": "what is not decided is named", "assoc scan": "what is not decided is named",
}  # fmt: skip
"""Functions of symbolic shapes whose types or decisions differ, with the reason."""

REFERENCES_ACCEPTED: Final = {
    ("branching", "vmap"), ("branching", "vmap grad"), ("looping", "vmap grad"),
    ("looping", "grad"), ("looping", "jit grad jit"), ("looping", "checkpoint"),
    ("looping", "jacfwd"), ("branching", "checkpoint"),
}  # fmt: skip
"""Functions with references and transformations that the reference does not support."""

WEAK_TYPES_OF_PROGRAMS: Final = {
    "switch_of_many", "nested_custom_jvp", "custom_vjp_in_scan", "nested_scans", "empty_arrays",
}  # fmt: skip
"""Programs with a result that is weakly typed in one library only."""

WEAK_TYPES_OF_NESTS: Final = {163, 286}
"""Seeds of nested transformations whose results differ only in weak types.

The reference's derivatives with respect to weak scalars are weakly or strongly typed, depending on
the order of its rules: a product of a strong and a weak tangent may be weak there.
"""

STATEMENTS: Final = [
    (
        "lax",
        "`checkpoint` of a function that writes a reference: the recomputed function starts from "
        "the contents of the first run. In the reference, it adds to what the first run wrote.",
        "test_references_oracle.py::test_intended_differences",
    ),
    (
        "lax",
        "Additions to a reference in the condition of a `while_loop` are stored. In the reference, "
        "they are lost.",
        "test_references_oracle.py::test_intended_differences",
    ),
    (
        "lax",
        "Powers: `uint64 ** int` is strongly typed if an operand is, and 4-bit integers have "
        "powers. The reference's are weakly typed, and refused.",
        "test_operators_oracle.py::test_types",
    ),
    (
        "lax",
        "`x // inf` and `inf // x` are those of the array API standard.",
        "test_operators_oracle.py::test_values",
    ),
    (
        "random",
        '`beta(method="approximate")`, and approximate `gamma` under `vmap`, differ in the last '
        "bits of some elements.",
        "test_random_distributions_oracle.py::test_approximate_beta_up_to_the_last_bits",
    ),
]
"""Module, difference and the test that proves it."""
