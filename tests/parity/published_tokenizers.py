"""Published tokenizers: their files, with small vocabularies trained in the published form.

published_tokenizers.json has a line for each: the repository, where its files were seen (pages of
huggingface.co, or memory), and all that they contain except for the vocabulary.
"""

from __future__ import annotations

import base64
import io
import json
import shutil
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import sentencepiece
from sentencepiece import sentencepiece_model_pb2
from tokenizers import Tokenizer, pre_tokenizers, processors, trainers

from fillmask_export.sample_texts import TEXTS, read_lines
from tests.model.tokenizers.tokenizer_directories import minilm_directory
from tests.model.tokenizers.tokenizer_samples import write_json

MASK = "<|mask here|>"  # in the place of a tokenizer's own mask
_CHARS, _SIZE = 120, 1000  # of a line, and of a trained vocabulary
_TABLE = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
PUBLISHED: list[dict[str, Any]] = _TABLE["tokenizers"]
_FLAGS = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
_EMPTY: dict[str, Any] = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": []}


@cache
def lines() -> tuple[str, ...]:
    """Return the export's sample texts in 20 languages, of other domains and of odd characters."""
    files = sorted(TEXTS.rglob("*.txt"))
    return tuple(dict.fromkeys(line[:_CHARS] for file in files for line in read_lines(file)))


@cache
def texts() -> tuple[str, ...]:
    """Return 2,000 distinct texts: all lines, and most of them changed in one of six ways."""
    found = list(lines())
    for index, line in enumerate(lines()):
        half, words = line[: len(line) // 2], line.split(" ")
        middle = len(words) // 2
        changes = (
            f"{half} {lines()[index - 1][:40]}",
            line.swapcase(),
            "".join(words),
            " ".join([*words[:middle], MASK, *words[middle + 1 :]]),
            f"{half}{MASK}{line[len(half) :]}",
            f"  ({', '.join(half.split())})...\t“{half}”—{MASK}!?",
        )
        found.append(changes[index % len(changes)])
    return tuple(dict.fromkeys(found))[:2000]


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """A vocabulary in files of its own, and its fields of the model in a tokenizer.json."""

    files: dict[str, bytes]
    fields: dict[str, Any]
    ids: dict[str, int]
    special: list[str]
    charsmap: bytes = b""


@cache
def vocabulary(name: str) -> Vocabulary:
    """Train a vocabulary, once per process."""
    options = _TABLE["vocabularies"][name]
    if "file" in options:
        return _unigram(options)
    special, merges = options["special"], []
    if "tokens" in options:
        mers = map("".join, product("ACGT", repeat=options.get("letters", 0)))
        tokens = [*special, *filter(None, mers), *options["tokens"]]
        ids = {token: index for index, token in enumerate(tokens)}
    else:
        parts = _TABLE["pipelines"][options["pipeline"]]
        model = parts["model"] | {"vocab": {}, "merges": []}
        untrained = _EMPTY | parts | {"model": model, "post_processor": None}
        trained = Tokenizer.from_str(json.dumps(untrained))
        of_bytes = [f"<0x{byte:02X}>" for byte in range(256) if model.get("byte_fallback")]
        more = {"special_tokens": [*special, *of_bytes]} | options.get("trainer", {})
        if "ByteLevel" in json.dumps(parts):
            more["initial_alphabet"] = pre_tokenizers.ByteLevel.alphabet()
        trainer: Any = {"BPE": trainers.BpeTrainer, "WordPiece": trainers.WordPieceTrainer}
        train = trainer[model["type"]](vocab_size=_SIZE, show_progress=False, **more)
        trained.train_from_iterator(lines()[::3], train)
        model = json.loads(trained.to_str())["model"]
        ids, merges = model["vocab"], model.get("merges", [])
    pairs = [" ".join(pair) for pair in merges]
    counts = options.get("counts", "")  # fairseq's form
    entries = [one for one in sorted(ids, key=ids.__getitem__) if one.isprintable() or not counts]
    files = {
        "vocab.txt": "".join(f"{entry}{counts}\n" for entry in entries),
        "vocab.json": json.dumps(ids),
        "merges.txt": "\n".join(["#version: 0.2", *pairs, ""]),
        "bpe.codes": "".join(f"{pair} 1\n" for pair in pairs or ["a b"]),
    }
    content = {name: text.encode() for name, text in files.items()}
    return Vocabulary(content, {"vocab": ids, "merges": merges}, ids, special)


def _unigram(options: dict[str, Any]) -> Vocabulary:
    """Train SentencePiece. In some tokenizer.json, other tokens replace the first pieces."""
    stream, corpus = io.BytesIO(), iter(lines()[::3])
    proto: Any = sentencepiece_model_pb2.ModelProto()  # type: ignore[attr-defined]
    more = {"vocab_size": _SIZE, "num_threads": 1, "minloglevel": 2} | options.get("options", {})
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=corpus, model_writer=stream, **more)
    proto.ParseFromString(stream.getvalue())
    own = proto.pieces[options.get("replaced", 0) :]
    before, after = options.get("before", []), options.get("after", [])
    control = [piece.piece for piece in own if piece.type in {piece.UNKNOWN, piece.CONTROL}]
    pieces = [(piece.piece, piece.score) for piece in own]
    pieces = [*((one, 0.0) for one in before), *pieces, *((one, 0.0) for one in after)]
    ids = {piece: index for index, (piece, _) in enumerate(pieces)}
    files, special = {options["file"]: stream.getvalue()}, [*before, *control, *after]
    charsmap = proto.normalizer_spec.precompiled_charsmap
    return Vocabulary(files, {"vocab": pieces}, ids, special, charsmap)


def write_published(directory: Path, row: dict[str, Any]) -> None:
    """Write the files of a published tokenizer, and a config.json."""
    if row["vocabulary"] is None:
        shutil.copytree(minilm_directory(), directory)
        return
    directory.mkdir()
    trained = vocabulary(row["vocabulary"])
    for name in row["files"]:
        (directory / name).write_bytes(trained.files[name])
    contents = {name: content for name, content in row.items() if name.endswith(".json")}
    added = {one: len(trained.ids) + i for one, i in row.get("added_tokens.json", {}).items()}
    if "added_tokens.json" in row:
        contents["added_tokens.json"] = added
    if "tokenizer.json" in row:
        contents["tokenizer.json"] = _tokenizer_json(row["tokenizer.json"], trained, added)
    for name, content in contents.items():
        write_json(directory / name, content)


def _tokenizer_json(
    described: dict[str, Any], trained: Vocabulary, added: dict[str, int]
) -> dict[str, Any]:
    charsmap = base64.b64encode(trained.charsmap).decode()
    pipeline = json.dumps(_TABLE["pipelines"][described["pipeline"]])
    parts = json.loads(pipeline.replace("of the model", charsmap))
    parts["model"] |= trained.fields
    processor, known = parts["post_processor"], trained.ids
    if "single" in processor:
        names = sorted({one for one in processor["single"].split() if not one.startswith("$")})
        special = [(name, known[name]) for name in names]
        templates = {name: processor[name] for name in ("single", "pair")}
        made: Any = processors.TemplateProcessing(**templates, special_tokens=special)
        parts["post_processor"] = json.loads(made.__getstate__())
    else:
        processor |= {role: (processor[role], known[processor[role]]) for role in ("sep", "cls")}
    flags = described.get("added", {})
    ids = {token: known[token] for token in trained.special} | added
    for token in flags:  # some tokens are only in added_tokens
        ids.setdefault(token, known.get(token, len(known.keys() | ids)))
    every = [
        {"id": ids[token], "content": token, "special": True} | _FLAGS | flags.get(token, {})
        for token in sorted(ids, key=ids.__getitem__)
    ]
    return {**_EMPTY, "added_tokens": every, **parts}
