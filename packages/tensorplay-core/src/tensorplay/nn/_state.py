"""Loading a `state_dict`: first everything is compared, then everything is taken over."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from .._tensor import Tensor
from ..errors import DTypeError, InvalidArgumentError


class IncompatibleKeys(NamedTuple):
    """What `Module.load_state_dict` did not find a partner for."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return f"IncompatibleKeys(missing_keys={self.missing_keys!r}, unexpected_keys={self.unexpected_keys!r})"


def load_state(
    module_name: str,
    targets: Mapping[str, Tensor],
    optional: Collection[str],
    state: Mapping[str, Tensor],
    strict: bool,
    assign: bool,
) -> IncompatibleKeys:
    """Gives the tensors of `targets` the values of `state`; see `Module.load_state_dict`."""
    if not isinstance(state, Mapping):
        raise DTypeError(f"load_state_dict: got {type(state).__name__}, expected a mapping of names to tensors")
    missing = [name for name in targets if name not in state and name not in optional]
    unexpected = [name for name in state if name not in targets]
    pairs = [(name, target, state[name]) for name, target in targets.items() if name in state]

    faults = [f"missing: {name}, shape {targets[name].shape}" for name in missing if strict]
    faults += [f"unexpected: {name}" for name in unexpected if strict]
    for name, target, source in pairs:
        if not isinstance(source, Tensor):
            faults.append(f"no tensor: {name}, got {type(source).__name__}")
        elif source.shape != target.shape:
            faults.append(f"wrong shape: {name}, got {source.shape}, expected {target.shape}")
    if faults:
        lines = "\n  ".join(faults)
        raise InvalidArgumentError(
            f"load_state_dict: {len(faults)} entries do not fit {module_name}, nothing was loaded\n  {lines}"
        )

    for _, target, source in pairs:
        if assign:
            target._replace(source.detach())
        else:
            target.copy_(source)
    return IncompatibleKeys(missing, unexpected)
