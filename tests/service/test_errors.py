"""Errors with quotes of a user's text. Tracebacks without the text."""

from fillmask.errors import MAX_QUOTED_CHARS, quote, safe_traceback


def test_quote_shows_a_short_text_whole() -> None:
    # The quote has only one line.
    assert quote('a\n"b"') == '"a\\n\\"b\\""'


def test_quote_is_never_longer_than_its_limit() -> None:
    # The quoted text may have any length and any number of escapes.
    for text in ("x" * 78, "x" * 79, "x" * 5000, "\n" * 60, '"' * 80, "é" * 200):
        assert len(quote(text)) <= MAX_QUOTED_CHARS
        assert quote(text).startswith('"')
        assert quote(text).endswith('"')


def test_trace_has_the_place_and_not_the_text() -> None:
    # The log has the location and type of an exception, never its message.
    words = "from the user"
    cause = ValueError(words)
    try:
        try:
            raise cause
        except ValueError as error:
            raise KeyError(words) from error
    except KeyError as error:
        text = safe_traceback(error)
    assert "KeyError" in text
    assert "ValueError" in text
    assert "test_errors.py" in text
    assert "from the user" not in text
