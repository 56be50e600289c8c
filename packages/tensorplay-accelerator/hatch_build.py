"""Pins tensorplay-core to this distribution's own version."""

from __future__ import annotations

from hatchling.metadata.plugin.interface import MetadataHookInterface


class ExactSiblings(MetadataHookInterface):
    """Writes the dependency, so that the version stands in one file."""

    def update(self, metadata: dict) -> None:
        metadata["dependencies"] = [f"tensorplay-core=={metadata['version']}"]
