"""Configurations: mappings from parameter names to values that JSON can hold."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

Config = Mapping[str, Any]

_SCALARS: Final = (bool, int, float, str, type(None))


def expanded_configs(
    configs: Any, args: Sequence[Any], options: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """The configurations of a call, without repetitions.

    Args:
      configs: a sequence of mappings; a mapping from names to sequences of values, of which all
        combinations are meant; or a function of the call's arguments that returns either. Objects
        with ``all_kwargs()``, such as ``triton.Config``, are configurations too.

    Raises:
      TypeError: for another object, or a value that JSON cannot hold.
      ValueError: if there are none, or their names differ.
    """
    if callable(configs):
        configs = configs(*args, **options)
    if isinstance(configs, Mapping):
        listed = _combinations(configs)
    elif isinstance(configs, Sequence) and not isinstance(configs, str):
        listed = [_config(c) for c in configs]
    else:
        raise TypeError(
            "configs is a sequence of mappings, a mapping from names to sequences of values, or a "
            f"function that returns one of them; got {configs!r}"
        )
    if not listed:
        raise ValueError("configs has no configuration")
    for config in listed:
        if set(config) != set(listed[0]):
            raise ValueError(
                f"configurations have the same names, got {sorted(listed[0])} and {sorted(config)}"
            )
    return list({text_of(c): c for c in listed}.values())


def _combinations(space: Mapping[str, Any]) -> list[dict[str, Any]]:
    for name, values in space.items():
        if not isinstance(values, (Sequence, range)) or isinstance(values, str):
            raise TypeError(
                f"the search space has a sequence of values for each name, got {name}={values!r}"
            )
    product = itertools.product(*space.values())
    return [_config(dict(zip(space, values))) for values in product]


def _config(config: Any) -> dict[str, Any]:
    if not isinstance(config, Mapping) and hasattr(config, "all_kwargs"):
        config = config.all_kwargs()
    if not isinstance(config, Mapping):
        raise TypeError(f"a configuration is a mapping from names to values, got {config!r}")
    for name, value in config.items():
        if not isinstance(name, str):
            raise TypeError(f"names of parameters are strings, got {name!r}")
        _check_value(value, name)
    return {name: from_json(value) for name, value in config.items()}


def _check_value(value: Any, name: str) -> None:
    if isinstance(value, (tuple, list)):
        for x in value:
            _check_value(x, name)
    elif not isinstance(value, _SCALARS):
        raise TypeError(
            f"values of configurations are integers, floats, Booleans, strings, None and tuples of "
            f"these, which can be stored as JSON; got {name}={value!r}: use its name"
        )


def from_json(value: Any) -> Any:
    """A value that JSON holds, with tuples for its arrays."""
    return tuple(map(from_json, value)) if isinstance(value, (tuple, list)) else value


def text_of(config: Config) -> str:
    """A text that is equal for equal configurations."""
    return json.dumps(config, sort_keys=True)


def described(config: Config) -> str:
    """A configuration in messages: ``rows=4, num_warps=8``."""
    return ", ".join(f"{name}={value!r}" for name, value in config.items()) or "no parameters"


def default_config(
    default: Any, configs: Callable[[], list[dict[str, Any]]], args: Sequence[Any],
    options: Mapping[str, Any],
) -> dict[str, Any]:  # fmt: skip
    """The configuration without measurements: ``default``, or the first of ``configs``."""
    if default is None:
        return configs()[0]
    return _config(default(*args, **options) if callable(default) else default)
