"""Fills of pairs, equal to the responses of /fill-mask."""

import json
from pathlib import Path

from fastapi.testclient import TestClient

from tests.service.cli.command_line import fillmask, read_csv

TEXT, PAIR = "the [MASK] barked", "a cup of [MASK]"


def test_one_pair(both: Path, both_client: TestClient) -> None:
    inputs = {"text": TEXT, "text_pair": PAIR}
    expected = both_client.post("/fill-mask", json={"inputs": inputs, "parameters": {"top_k": 2}})
    flags = ("--text-pair", PAIR, "--top-k=2", "--bundle", both)
    assert fillmask(TEXT, "--json", *flags).out.encode() == expected.content + b"\n"
    table = fillmask(TEXT, *flags).out.splitlines()
    assert table[1].endswith(expected.json()[0][0]["sequence"])


def test_pairs_need_the_flag(both: Path, both_client: TestClient, tmp_path: Path) -> None:
    # Without --text-pair-column, the command ignores a column text_pair.
    source = tmp_path / "in.csv"
    source.write_text(f"inputs,text_pair\n{TEXT},{PAIR}\n")
    for flags, inputs in (
        ([], TEXT),
        (["--text-pair-column=text_pair"], {"text": TEXT, "text_pair": PAIR}),
    ):
        output = tmp_path / f"out{len(flags)}.csv"
        done = fillmask(
            *("--input", source, "--output", output, "--bundle", both, "--top-k=1", *flags)
        )
        assert done.code == 0, done.err
        body = {"inputs": inputs, "parameters": {"top_k": 1}}
        answer = both_client.post("/fill-mask", json=body).json()
        fills = answer if isinstance(answer[0], dict) else [fill for [fill] in answer]
        rows = read_csv(output)
        assert [row["sequence"] for row in rows] == [fill["sequence"] for fill in fills]
        assert [json.loads(row["score"]) for row in rows] == [fill["score"] for fill in fills]
