"""JSON files of other people: read with one clear sentence for each way they are broken."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def read_text(path: Path) -> str:
    """The text of a UTF-8 file.

    Raises:
        ValueError: the file does not exist or is not UTF-8.
    """
    try:
        return path.read_bytes().decode()  # read_text would change line ends
    except FileNotFoundError:
        raise ValueError(f"{path} does not exist") from None
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8 text: {error}") from None


def read_object(path: Path) -> dict[str, Any]:
    """The object a JSON file holds.

    Raises:
        ValueError: the file does not exist, is not JSON, or holds something else.
    """
    try:
        fields = json.loads(read_text(path))
    except json.JSONDecodeError as error:
        raise ValueError(f"{path} is not valid JSON: {error}") from None
    if not isinstance(fields, dict):
        raise ValueError(f"{path} must hold a JSON object")  # noqa: TRY004 - the file's value is wrong
    return fields
