"""Lines of a byte stream, with various line endings, line lengths and read sizes."""

import codecs
import io

import pytest

from fillmask.tables.streams import read_lines
from tests.service.cli.command_line import dice

# only the first of them ends a line
PIECES = [b"\n", b"\r", b"\r\n", codecs.BOM_UTF8, "\u2028\x0b\x85".encode(), b"\xff", b"a", b"b"]
MAX_BYTES = 9


class Trickle(io.RawIOBase):
    """File that returns at most `most` bytes per read."""

    def __init__(self, content: bytes, most: int) -> None:
        self._content = io.BytesIO(content)
        self._most = most

    def read(self, size: int = -1, /) -> bytes:
        return self._content.read(min(size, self._most))


@pytest.mark.parametrize("most", [1, 3, 1000])
def test_lines_of_any_content(most: int) -> None:
    # A mark at the start is removed, also as the only content. A line that is too long is None.
    rng = dice(most)
    for _ in range(300):
        content = b"".join(rng.choices(PIECES, k=rng.randint(0, 20)))
        *ended, last = content.split(b"\n")
        lines = [
            (line + end) if len(line) <= MAX_BYTES else None
            for line, end in [*((line, b"\n") for line in ended), (last, b"")]
        ]
        lines[0] = lines[0] and lines[0].removeprefix(codecs.BOM_UTF8)
        found = list(read_lines(Trickle(content, most), MAX_BYTES))
        assert [line for some in found for line in some] == (
            lines if lines[-1] != b"" else lines[:-1]
        )


def test_complete_lines_do_not_wait_for_later_bytes() -> None:
    lines = read_lines(Trickle(b"a\nb\nc", 2))
    assert next(lines) == [b"a\n"]
    assert next(lines) == [b"b\n"]
