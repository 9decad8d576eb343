"""Python examples of a page as scripts, with the output shown under them."""

from __future__ import annotations

import re

BLOCK = re.compile(r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?", re.DOTALL)
# printed after each block
END = "-- end of a block --\n"
_MAIN = "if __name__ =="


def python_scripts(page: str) -> list[tuple[str, list[str]]]:
    """Return the scripts of a page, each with the output that the page shows for its blocks.

    The first script has the blocks in their order, as in a notebook. A block with a main guard
    starts processes, which run the whole script again, so it is a script of its own.
    """
    notebook: tuple[str, list[str]] = ("", [])
    scripts = []
    for code, shown in BLOCK.findall(page):
        block = f"{code}\nprint({END!r}, end='')\n"
        if _MAIN in code:
            scripts.append((f"from fillmask import FillMask\n{code}", [shown]))
        else:
            notebook = (notebook[0] + block, [*notebook[1], shown])
    return [notebook, *scripts]
