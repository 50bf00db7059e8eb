"""What ``with_refs`` of a pullback takes and gives besides references."""

from ._api.grad_refs import (
    DidntWant as DidntWant,
    DontWant as DontWant,
    GradRef as GradRef,
    GradValue as GradValue,
)
