"""Lines of a byte stream, with various line endings, line lengths and read sizes."""

import io

import pytest

from fillmask.tables.streams import read_lines
from tests.service.cli.command_line import dice


class Trickle:
    """Stream that returns at most `most` bytes per read."""

    def __init__(self, content: bytes, most: int) -> None:
        self._content = io.BytesIO(content)
        self._most = most

    def read(self, size: int, /) -> bytes:
        return self._content.read(min(size, self._most))


def lines_of(content: bytes, most: int = 2**20, max_bytes: int = 100) -> list[bytes | None]:
    """Return all lines of the content, with None for each line that is too long."""
    return [line for some in read_lines(Trickle(content, most), max_bytes) for line in some]


@pytest.mark.parametrize("most", [1, 3, 1000])
@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (b"", []),
        (b"\n", [b"\n"]),
        (b"a", [b"a"]),
        (b"a\n", [b"a\n"]),
        (b"a\r\nb\r\n", [b"a\r\n", b"b\r\n"]),
        (b"a\n\nb", [b"a\n", b"\n", b"b"]),
        (b"a\rb\n", [b"a\rb\n"]),
        ("a\u2028b\x0bc\x85\n".encode(), ["a\u2028b\x0bc\x85\n".encode()]),
        (b"\xef\xbb\xbf", []),
        (b"\xef\xbb\xbfa\n\xef\xbb\xbfb", [b"a\n", b"\xef\xbb\xbfb"]),
        (b"\xff\xfe\n", [b"\xff\xfe\n"]),
        (
            b"a" * 100 + b"\n" + b"b" * 101 + b"\n" + b"c\n" + b"d" * 1000,
            [b"a" * 100 + b"\n", None, b"c\n", None],
        ),
    ],
)
def test_lines(content: bytes, lines: list[bytes | None], most: int) -> None:
    # Only line feeds end a line.
    assert lines_of(content, most) == lines


def test_lines_do_not_depend_on_the_chunks() -> None:
    rng = dice(0)
    for _ in range(50):
        content = bytes(rng.choices(b"ab\r\n\xef\xbb\xbf", k=rng.randint(0, 60)))
        whole = lines_of(content)
        assert whole == lines_of(content, rng.randint(1, 5))
        *expected, last = content.removeprefix(b"\xef\xbb\xbf").split(b"\n")
        assert whole == [line + b"\n" for line in expected] + [last] * bool(last)


def test_complete_lines_do_not_wait_for_later_bytes() -> None:
    lines = read_lines(Trickle(b"a\nb\nc", 2))
    assert next(lines) == [b"a\n"]
    assert next(lines) == [b"b\n"]
