"""Recipes of a page: the script under a heading, and the shell line that runs it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

_BLOCK = re.compile(r"^```(python|sh)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_SCRIPT = re.compile(r"\b\w+\.py\b")


@dataclass(frozen=True, slots=True)
class Recipe:
    """A recipe, exactly as on the page.

    Attributes:
        shell: commands that run it in a folder with its input.
        script: the Python script of these commands. None for a recipe without one.
    """

    shell: str
    script: str | None = None

    @property
    def script_name(self) -> str:
        """File name of the script, which the commands contain."""
        [name] = _SCRIPT.findall(self.shell)
        return str(name)

    def write_script(self, folder: Path) -> None:
        """Write the script, if any, to a folder."""
        if self.script is not None:
            (folder / self.script_name).write_text(self.script, encoding="utf-8")


def read_recipe(page: str, title: str) -> Recipe:
    """Return the recipe under a heading.

    Args:
        page: text of the page in Markdown.
        title: heading of the second level.

    Raises:
        ValueError: the section doesn't have one block of shell commands and, if these name a
            script, one block of Python.
    """
    _, _, below = page.partition(f"\n## {title}\n")
    blocks = _BLOCK.findall(below.partition("\n## ")[0])
    shell = [code for language, code in blocks if language == "sh"]
    python = [code for language, code in blocks if language == "python"]
    if len(shell) != 1 or len(python) > 1 or len(_SCRIPT.findall(shell[0])) != len(python):
        raise ValueError(
            f"the section {title!r} must contain one sh block, and one python block if the "
            f"commands name a script (got {len(shell)} and {len(python)})."
        )
    return Recipe(shell[0], python[0] if python else None)
