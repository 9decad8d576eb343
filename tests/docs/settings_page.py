"""Generator of docs/settings.md from the settings: `python -m tests.docs.settings_page`."""

from typing import Any

from fillmask.settings import ENV_PREFIX, Settings, allowed, settings_by_group
from fillmask.settings.flags import default_text
from tests.docs.pages import DOCS

PAGE = DOCS / "settings.md"
HEAD = """\
# Settings

`make settings-page` writes this page from `service/fillmask/settings/settings.py`.

A setting is an environment variable or a flag of `fillmask-serve`. For example,
`FILLMASK_MAX_TEXTS=8` has the same effect as `--max-texts 8`. A flag takes precedence over a
variable. For an unknown `FILLMASK_` variable or an invalid value, the service does not start and
prints an error message. `fillmask-serve --help` has the same groups as this page.
"""
TABLE_HEAD = """\
| Variable | Default | Allowed | Meaning |
|---|---|---|---|
"""
TAIL = """
## Signals

After SIGTERM or SIGINT the service finishes the accepted requests and exits with code 0. A second
signal ends the process immediately. After SIGHUP the service reloads changed bundles.
"""


def render() -> str:
    """Return the text of docs/settings.md."""
    schemas = Settings.model_json_schema()["properties"]
    rows = []
    for title, fields in settings_by_group().items():
        rows.append(f"\n## {title}\n\n{TABLE_HEAD}")
        for name, field in fields.items():
            default = default_text(field)
            cells = [
                f"`{ENV_PREFIX}{name.upper()}`",
                f"`{default}`" if default else "",
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
