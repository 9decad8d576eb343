"""Metadata of the wheel and the sdist that depend on the repository's address.

The address is PROJECT_URL. Without it, a build names none, because a copy must not name another's.
"""

import os
import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface


class RepositoryHook(MetadataHookInterface):
    """Hook of hatchling that sets `urls` and `readme`."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the fields. A package index shows the README, whose relative links lead nowhere."""
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        if url := os.environ.get("PROJECT_URL"):
            tag = f"v{metadata['version']}"
            metadata["urls"] = {
                "Source": url,
                "Documentation": f"{url}/tree/{tag}/docs",
                "Changelog": f"{url}/blob/{tag}/CHANGELOG.md",
                "Issues": f"{url}/issues",
            }
            relative = r"\]\((?!https?:|#)"
            text = re.sub(rf"(!\[[^\]]*){relative}", rf"\1]({url}/raw/{tag}/", text)
            text = re.sub(relative, f"]({url}/blob/{tag}/", text)
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
