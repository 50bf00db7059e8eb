"""Arguments and results of ``with_refs`` of a pullback, besides references."""

from ._api.grad_refs import (
    DidntWant as DidntWant,
    DontWant as DontWant,
    GradRef as GradRef,
    GradValue as GradValue,
)
