"""Recipes of a page."""

import ast
from pathlib import Path

import pytest

from benchmarks import generated_block
from benchmarks.scale.__main__ import NAME
from benchmarks.scale.recipe import read_recipe
from benchmarks.scale.ways import PAGE, ways

SCRIPT = "```python\nprint(1)\n```\n"
SHELL = "```sh\nrun first.py\n```\n"
TEXT = f"# Page\n\n## One\n\nText.\n\n{SCRIPT}\n{SHELL}\n## Two\n\n```sh\ncommand\n```\n"


def test_recipe_is_the_code_of_its_section(tmp_path: Path) -> None:
    recipe = read_recipe(TEXT, "One")
    assert recipe.shell == "run first.py\n"
    recipe.write_script(tmp_path)
    assert (tmp_path / "first.py").read_text() == "print(1)\n"


def test_recipe_without_a_script_writes_nothing(tmp_path: Path) -> None:
    recipe = read_recipe(TEXT, "Two")
    assert recipe.shell == "command\n"
    recipe.write_script(tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "text",
    [
        TEXT.replace("## One", "## Other"),
        TEXT.replace(SCRIPT, ""),
        TEXT.replace(SCRIPT, SCRIPT + SCRIPT),
        TEXT.replace(SHELL, ""),
        TEXT.replace("first.py", "first"),
    ],
    ids=["no section", "no script", "two scripts", "no commands", "script that nothing runs"],
)
def test_incomplete_section_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="the section 'One' must contain one sh block"):
        read_recipe(text, "One")


def test_page_has_the_recipe_of_each_way() -> None:
    page = PAGE.read_text(encoding="utf-8")
    command, *engines = ways(Path("scale"))
    assert command.output in read_recipe(page, command.title).shell
    for way in engines:
        script = read_recipe(page, way.title).script
        assert script is not None
        assert "from fillmask import FillMask" in ast.unparse(ast.parse(script))
        assert f'"{way.output}"' in script


def test_table_has_a_row_of_each_way() -> None:
    lines = generated_block.read(PAGE, NAME).splitlines()
    assert [line.split()[1] for line in lines[2:5]] == ["`fillmask`", "Ray", "Spark"]
