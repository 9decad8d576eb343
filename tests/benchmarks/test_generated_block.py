"""Generated block of a page."""

from pathlib import Path

import pytest

from benchmarks import generated_block

PAGE = """# Page
<!-- begin: benchmarks/one.py -->
old
<!-- end -->
between
<!-- begin: benchmarks/two.py -->
other
<!-- end -->
"""


@pytest.fixture
def page(tmp_path: Path) -> Path:
    path = tmp_path / "page.md"
    path.write_text(PAGE)
    return path


def test_part_is_replaced_and_the_rest_stays(page: Path) -> None:
    generated_block.write(page, "one", "new\nlines")
    assert generated_block.read(page, "one") == "new\nlines\n"
    assert page.read_text() == PAGE.replace("old", "new\nlines")


def test_page_without_marks_is_refused(page: Path) -> None:
    with pytest.raises(ValueError, match=r"page\.md must contain .*benchmarks/three\.py"):
        generated_block.write(page, "three", "new")
    assert page.read_text() == PAGE
