"""Personal data in texts: F1 of a tagger, and int8 against fp32, for docs/token-classification.md.

    .venv-dev/bin/python -m benchmarks.tasks.tagging SENTENCES DIRECTORY

SENTENCES is a text file, such as a part of the built-in model's corpus. Names, addresses and dates
get into its sentences without capitals and digits of their own, and between them by templates. The
test rows have other names and templates. The run takes a quarter of an hour.
"""

from __future__ import annotations

import calendar
import json
import random
import re
import sys
from pathlib import Path
from typing import Any

from benchmarks import generated_block
from benchmarks.tasks.checkpoints import OURS, bundle_of, export
from fillmask import FillMask
from fillmask.bundles.bundle import default_bundle_path
from fillmask_export.restore import main as restore
from fillmask_model.commands import main as train

PAGE = Path(__file__).parents[2] / "docs" / "token-classification.md"
TRAINING, TEST, EPOCHS = 2500, 1000, 4
PLAIN = re.compile(r"(?:^|(?<=[.!?] ))[A-Z][^A-Z0-9@.!?]{30,200}[.!?](?= |$)", re.MULTILINE)
WORDS = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))


def main() -> None:
    """Train, export and compare on the test rows, and write the figures to the page."""
    sentences = PLAIN.findall(Path(sys.argv[1]).read_text(encoding="utf-8"))
    directory, draw = Path(sys.argv[2]), random.Random(0)  # noqa: S311 - no secret
    draw.shuffle(sentences)
    training = [make_row(draw, sentences.pop(), 0) for _ in range(TRAINING)]
    test = [make_row(draw, sentences.pop(), 1) for _ in range(TEST)]
    data, texts = directory / "data.jsonl", directory / "texts.txt"
    data.write_text("".join(f"{json.dumps(one)}\n" for one in training))
    texts.write_text("".join(f"{one['text']}\n" for one in training[:200]))
    start, model = directory / "start", directory / "model"
    restore([str(default_bundle_path()), str(start)])
    command = ["classify-tokens", str(data), "--init", str(start), "--output", str(model)]
    if train([*command, "--epochs", str(EPOCHS)]):
        raise SystemExit("the training has failed; read its message above")
    for name in OURS:
        export(model, name, "--texts", str(texts), "--calibrate", str(texts), "--overwrite")
    inputs = [one["text"] for one in test]
    (int8, int8_tags), (fp32, fp32_tags) = (label(bundle_of(model, name), inputs) for name in OURS)
    actual = {(n, *entity.values()) for n, one in enumerate(test) for entity in one["entities"]}
    same = sum(a == b for a, b in zip(int8_tags, fp32_tags, strict=True)) / len(fp32_tags)
    f1 = [2 * len(found & actual) / (len(found) + len(actual)) for found in (fp32, int8)]
    block = (
        f"On {TEST:,} test rows with {len(actual):,} entities, the F1 is {f1[0]:.3f} in fp32 and "
        f"{f1[1]:.3f} in int8.\nint8 has fp32's label at {100 * same:.2f} % of {len(fp32_tags):,} "
        f"tokens and finds {100 * len(int8 & fp32) / len(fp32):.2f} % of fp32's entities exactly."
    )
    print(block)
    generated_block.write(PAGE, "tasks/tagging", block)


def make_row(draw: random.Random, sentence: str, held_out: int) -> dict[str, Any]:
    """Return a sentence with values, between up to two filled templates, and the entities."""
    words = sentence.split()
    for kind in draw.choices(WORDS["kinds"], k=draw.choice([0, 0, 1])):
        words.insert(draw.randint(1, len(words)), f"{{{kind}}}")
    parts = [" ".join(words), *draw.sample(part("templates", held_out), draw.choice([0, 1, 1, 2]))]
    draw.shuffle(parts)
    text, entities = "", []
    for piece in re.split(r"({[A-Z]+})", " ".join(parts)):
        found = make_value(draw, piece[1:-1], held_out) if piece.startswith("{") else piece
        if found != piece:
            entities.append({"start": len(text), "end": len(text + found), "label": piece[1:-1]})
        text += found
    return {"text": text, "entities": entities}


def make_value(draw: random.Random, kind: str, held_out: int) -> str:
    first, last, city = (draw.choice(part(one, held_out)) for one in ("first", "last", "cities"))
    day, month, year = draw.randint(1, 28), draw.randint(1, 12), draw.randint(1950, 2026)
    name, area, number = calendar.month_name[month], draw.randint(20, 999), str(draw.random())[2:9]
    user = f"{first}{draw.choice('._-')}{last}".lower()
    forms = {
        "PERSON": [f"{first} {last}", first, f"Dr. {last}", f"{first[0]}. {last}"],
        "EMAIL": [f"{user}@{last[:2].lower()}mail.com", f"{first.lower()}{day}@{last.lower()}.org"],
        "PHONE": [f"+{day} {area} {number}", f"({area}) {number[:3]}-{number[3:]}", f"0{number}"],
        "DATE": [f"{day} {name} {year}", f"{name} {day}", f"{year}-{month:02}-{day:02}"],
        "CITY": [city],
    }
    return draw.choice(forms[kind])


def part(name: str, held_out: int) -> list[str]:
    """Return every fourth word for the test, or the others for training."""
    return [one for number, one in enumerate(WORDS[name]) if (number % 4 == 0) == held_out]


def label(bundle: Path, texts: list[str]) -> tuple[set[Any], list[str]]:
    """Return the entities of texts, with the numbers of their texts, and the labels of tokens."""
    with FillMask(bundle) as model:
        entities = model.classify_tokens(texts)
        tokens = model.classify_tokens(texts, aggregation_strategy="none", ignore_labels=[])
    found = {(n, x.start, x.end, x.entity_group) for n, own in enumerate(entities) for x in own}
    return found, [one.entity for own in tokens for one in own]


if __name__ == "__main__":
    main()
