"""Python examples of a page as a script, with the output shown under them."""

from __future__ import annotations

import re

BLOCK = re.compile(r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?", re.DOTALL)
# printed after each block
END = "-- end of a block --\n"


def python_script(page: str) -> tuple[str, list[str]]:
    """Return the blocks of a page in their order, and the output that the page shows for each."""
    blocks = BLOCK.findall(page)
    return (
        "".join(f"{code}\nprint({END!r}, end='')\n" for code, _ in blocks),
        [shown for _, shown in blocks],
    )
