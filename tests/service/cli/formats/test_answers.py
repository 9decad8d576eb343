"""Answers: fills and problems, told apart."""

import json

from service.cli.formats.answers import Problem, fills_of, problem_of


def test_fills_of_each_mask() -> None:
    """One mask is a list of one, without fills too."""
    assert fills_of(b'[{"token": 1}, {"token": 2}]') == [[{"token": 1}, {"token": 2}]]
    assert fills_of(b'[[{"token": 1}], []]') == [[{"token": 1}], []]
    assert fills_of(b"[]") == [[]]
    assert problem_of(b"[]") is None


def test_problems_are_read_back() -> None:
    """Whatever their sentence says."""
    for problem in (Problem('a "b"\n\u2028'), Problem("c", readable=False)):
        assert problem_of(problem.line) == problem
        assert b"\n" not in problem.line
        assert json.loads(problem.line)
