"""Parsing of a row's answer, which is either a result or a problem."""

import json

from fillmask.cli.formats.answers import Problem, fills_of, parse_problem


def test_results_are_no_problems() -> None:
    # Fills and labels are lists. Scores are objects.
    for answer in (b"[]", b'[{"error":1}]', b'{"log_prob":-1.5,"pseudo_perplexity":2.0}'):
        assert parse_problem(answer) is None


def test_problems_are_read_back() -> None:
    for problem in (Problem('a "b"\n\u2028'), Problem("c", readable=False)):
        assert parse_problem(problem.line) == problem
        assert b"\n" not in problem.line
        assert json.loads(problem.line)


def test_fills_of_each_mask() -> None:
    # The result has one list of fills per mask, even for a single mask without fills.
    assert fills_of(b'[{"token": 1}, {"token": 2}]') == [[{"token": 1}, {"token": 2}]]
    assert fills_of(b'[[{"token": 1}], []]') == [[{"token": 1}], []]
    assert fills_of(b"[]") == [[]]
