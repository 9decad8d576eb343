"""Generator of docs/settings.md from the settings: `python -m tests.docs.settings_page`."""

from typing import Any

from fillmask.settings import ENV_PREFIX, Settings
from fillmask.settings.settings import allowed, default_text, settings_by_group
from tests.docs.pages import DOCS

PAGE = DOCS / "settings.md"
HEAD = """\
<!-- make settings-page writes this page from service/fillmask/settings/settings.py -->
# Settings

Set an environment variable or the flag of the same name: `FILLMASK_MAX_TEXTS=8` does the same as
`--max-texts 8`, and the flag wins if you set both. A typo can't go unnoticed, because the service
doesn't start with an unknown `FILLMASK_` variable, or with a value that isn't allowed (unless a
flag overrides it). In your terminal, `fillmask-serve --help` has the same list.
"""
TABLE_HEAD = """\
| Variable | Default | Allowed | Meaning |
|---|---|---|---|
"""
TAIL = """
## Signals

SIGTERM or SIGINT lets accepted requests finish, and the exit code is 0. Send a second one to end
the process at once. SIGHUP reloads changed bundles.
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
