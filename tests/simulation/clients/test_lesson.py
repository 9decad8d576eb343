"""The answers of a quiet service, against arithmetic on the questions' own ids."""

import json
import math

import numpy as np
import pytest

from tests.service.tiny import MASK_ID, VOCABULARY
from tests.simulation.clients.lesson import learn_answers
from tests.simulation.clients.questions import questions
from tests.simulation.machine.disk import SALTS
from tests.simulation.machine.runtime import answer_key, log_probs_of

CLS, SEP = VOCABULARY.index("[CLS]"), VOCABULARY.index("[SEP]")


@pytest.fixture(autouse=True, scope="module")
def _answers() -> None:
    learn_answers()


def ids_of(text: str) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array([CLS, *map(VOCABULARY.index, text.split()), SEP])


def test_fills_follow_from_the_ids_of_their_text() -> None:
    fills = [one for one in questions() if one.light]
    assert len(fills) >= 50
    for question in fills:
        body = json.loads(question.body)
        ids = ids_of(body["inputs"])
        for salt, (status, answer) in question.answers.items():
            assert status == 200
            position = int(np.flatnonzero(ids == MASK_ID)[0])
            tokens, log_probs = log_probs_of(answer_key(ids, position, salt))
            got = json.loads(answer)
            top_k = body["parameters"]["top_k"]
            assert [fill["token"] for fill in got] == tokens[:top_k].tolist()
            expected = [math.exp(float(one)) for one in log_probs[:top_k]]
            assert [fill["score"] for fill in got] == pytest.approx(expected, rel=1e-9)


def test_answers_differ_and_most_questions_are_good() -> None:
    given = [
        (status, answer) for question in questions() for status, answer in question.answers.values()
    ]
    good = [answer for status, answer in given if status == 200]
    assert len(set(good)) == len(good) > 150 * SALTS
    assert {status for status, _ in given if status != 200} == {400, 404, 413, 422}
