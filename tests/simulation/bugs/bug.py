"""A bug, as edits of a copy of the service."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Bug:
    """A bug, as edits of files below service/fillmask.

    Attributes:
        edits: file, its present code and the code with the bug.
    """

    name: str
    edits: tuple[tuple[str, str, str], ...]

    def put_into(self, package: Path) -> None:
        """Edit a copy of the package.

        Raises:
            ValueError: the present code is not in the file, or is there more than once.
        """
        for file, present, buggy in self.edits:
            path = package / file
            content = path.read_text()
            if content.count(present) != 1:
                raise ValueError(
                    f"{self.name}: {file} must contain this code once (got "
                    f"{content.count(present)} times): {present}"
                )
            path.write_text(content.replace(present, buggy))


def bug(name: str, *edits: str) -> Bug:
    """Return a bug from the file, the present code and the code with the bug of each edit."""
    return Bug(name, tuple(zip(edits[::3], edits[1::3], edits[2::3], strict=True)))
