"""docs/settings.md is what its script writes."""

from tests.docs import settings_page
from tests.docs.pages import read


def test_settings_page_is_current() -> None:
    assert read(settings_page.PAGE) == settings_page.render(), "run: make settings-page"
