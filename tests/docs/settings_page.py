"""Generator of docs/settings.md from service/settings.py: `python -m tests.docs.settings_page`."""

from typing import Any

from pydantic_core import PydanticUndefined

from service.settings import ENV_PREFIX, Settings, allowed
from tests.docs.pages import DOCS

PAGE = DOCS / "settings.md"
HEAD = """\
# Settings

`make settings-page` writes this page from `service/settings.py`.

A setting is an environment variable or a flag of `fillmask-serve`. For example,
`FILLMASK_MAX_TEXTS=8` has the same effect as `--max-texts 8`. A flag takes precedence over a
variable. For an unknown `FILLMASK_` variable or an invalid value, the service does not start and
prints an error message.

| Variable | Default | Allowed | Meaning |
|---|---|---|---|
"""
TAIL = """
After SIGTERM or SIGINT the service finishes the accepted requests and exits with code 0. A second
signal ends the process immediately. After SIGHUP the service reloads changed bundles.
"""


def render() -> str:
    """Return the text of docs/settings.md."""
    schemas = Settings.model_json_schema()["properties"]
    rows = []
    for name, field in Settings.model_fields.items():
        shown = field.default not in {None, "", PydanticUndefined}
        default = f"`{field.default}`" if shown else ""
        cells = [
            f"`{ENV_PREFIX}{name.upper()}`",
            default,
            _allowed(name, schemas[name]),
            str(field.description),
        ]
        rows.append("| " + " | ".join(cells) + " |\n")
    return HEAD + "".join(rows) + TAIL


def _allowed(name: str, schema: dict[str, Any]) -> str:
    """Return the allowed values of a setting, or an empty string for texts and paths."""
    bounded = {"enum", "allowed"} & schema.keys() or schema.get("type") in {"integer", "boolean"}
    return allowed(name) if bounded else ""


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
