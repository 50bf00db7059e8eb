"""The argument ``nan_policy``."""

from __future__ import annotations


def check_policy(name: str, policy: str, accepted: tuple[str, ...] = ("propagate",)) -> None:
    """Check a ``nan_policy``.

    Raises:
      NotImplementedError: for a policy whose result depends on the data.
      ValueError: for an unknown one.
    """
    if policy in accepted:
        return
    if policy == "omit":
        raise NotImplementedError(
            f"{name}: nan_policy='omit' is not supported: replace the NaN before the call."
        )
    if policy == "raise":
        raise NotImplementedError(
            f"{name}: nan_policy='raise' is not supported, because a compiled function cannot "
            "raise for its values: check with jnp.isnan(a).any() before the call."
        )
    raise ValueError(f"{name}: unknown nan_policy {policy!r}: pass 'propagate', 'omit' or 'raise'.")
