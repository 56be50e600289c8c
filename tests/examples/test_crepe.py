"""CREPE on every device, against what NumPy computed in float64 (`reference_crepe`)."""

from __future__ import annotations

from pathlib import Path

import crepe
import melody
import numpy as np
import pytest
from reference_crepe import HOP, SALIENCE, Reference

import tensorplay

SOUND = melody.play(melody.notes(), crepe.RATE)


def test_the_stored_salience_is_that_of_the_reference(crepe_weights: Path) -> None:
    reference = Reference(crepe_weights)
    stored = np.load(SALIENCE)
    assert stored.shape == (len(SOUND) // HOP + 1, 360)
    for row in (0, 8, 25):
        np.testing.assert_allclose(reference.salience(SOUND, row * HOP), stored[row], atol=1e-12)


@pytest.mark.parametrize(("dtype", "most"), [("float32", 5e-6), ("float16", 5e-3), ("bfloat16", 2e-2)])
def test_salience_agrees_with_the_reference(crepe_weights: Path, device: str, dtype: str, most: float) -> None:
    tracker = crepe.PitchTracker(crepe_weights, device, getattr(tensorplay, dtype))
    salience = tracker.track(SOUND, HOP).salience
    assert salience.dtype is tensorplay.float32
    np.testing.assert_allclose(salience.cpu().numpy(), np.load(SALIENCE), rtol=0, atol=most)


def test_the_tune_is_heard(crepe_weights: Path, device: str) -> None:
    hop = 1_600
    heard = crepe.PitchTracker(crepe_weights, device).track(SOUND, hop)
    pitches = 69 + 12 * np.log2(heard.frequency.cpu().numpy() / 440)
    compared = 0
    for note in melody.notes():
        # A frame reaches 32 ms to each side; only those that hear nothing else are held to the note.
        inside = [at for at in range(len(pitches)) if note.start + 0.04 < at * hop / crepe.RATE < note.end - 0.04]
        seconds = np.array(inside) * hop / crepe.RATE - note.start
        np.testing.assert_allclose(pitches[inside], melody.pitch(note, seconds), atol=0.4)
        compared += len(inside)
    assert compared > 40


def test_silence_has_no_pitch(crepe_weights: Path, device: str) -> None:
    heard = crepe.PitchTracker(crepe_weights, device).track(np.zeros(3_200, np.float32))
    assert heard.confidence.shape == (11,)
    assert heard.confidence.cpu().numpy().max() < 0.1


def test_a_frame_does_not_feel_the_others_of_its_batch(crepe_weights: Path, device: str) -> None:
    tracker = crepe.PitchTracker(crepe_weights, device)
    together, alone = (tracker.track(SOUND[:3_200], batch_size=size).salience.cpu().numpy() for size in (11, 1))
    np.testing.assert_allclose(together, alone, atol=2e-6)


def test_progress_counts_frames(crepe_weights: Path) -> None:
    done: list[int] = []
    crepe.PitchTracker(crepe_weights).track(SOUND[:3_200], batch_size=4, progress=done.append)
    assert done == [4, 4, 3]
