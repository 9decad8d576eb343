"""The page docs/settings.md, compared with the output of its generator."""

from tests.docs import settings_page
from tests.docs.pages import read


def test_settings_page_is_current() -> None:
    assert read(settings_page.PAGE) == settings_page.render(), "run: make settings-page"
