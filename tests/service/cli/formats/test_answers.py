"""Parsing of a row's answer, which is either fills or a problem."""

import json

from service.cli.formats.answers import Problem, parse_fills, parse_problem


def test_fills_of_each_mask() -> None:
    """The result has one list of fills per mask, even for a single mask without fills."""
    assert parse_fills(b'[{"token": 1}, {"token": 2}]') == [[{"token": 1}, {"token": 2}]]
    assert parse_fills(b'[[{"token": 1}], []]') == [[{"token": 1}], []]
    assert parse_fills(b"[]") == [[]]
    assert parse_problem(b"[]") is None


def test_problems_are_read_back() -> None:
    for problem in (Problem('a "b"\n\u2028'), Problem("c", readable=False)):
        assert parse_problem(problem.line) == problem
        assert b"\n" not in problem.line
        assert json.loads(problem.line)
