"""A checkpoint's tokenizer: what each file decides, and a sentence for each broken one."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sentencepiece import SentencePieceProcessor
from tokenizers import Encoding, Tokenizer, models, normalizers, pre_tokenizers
from transformers import AutoTokenizer

from model.checkpoint import CheckpointError, load_checkpoint, save_checkpoint
from model.tokenizer_files import TokenizerFiles, read_tokenizer_files
from tests.model.samples import random_encoder, small_config
from tests.model.tokenizer_directories import KINDS, minilm_directory, write_directory
from tests.model.tokenizer_samples import (
    BERT_SPECIAL,
    TOKENIZER_JSON,
    byte_pair_files,
    sentence_pieces,
    write_json,
)


def write(directory: Path, name: str, *, fast: bool = False) -> Path:
    """The files of one class."""
    path = directory / "files"
    write_directory(path, KINDS[name], fast=fast)
    return path


def read(directory: Path, model_type: str | None) -> TokenizerFiles:
    """What was read, which must be something."""
    files = read_tokenizer_files(directory, model_type)
    assert files is not None
    return files


def encode(files: TokenizerFiles, text: str, second: str | None = None) -> Encoding:
    """As the file says."""
    return load(files).encode(text, second)


def load(files: TokenizerFiles) -> Tokenizer:
    """The tokenizer itself."""
    return Tokenizer.from_str(files.tokenizer_json.decode())


def added_tokens(files: TokenizerFiles) -> dict[str, dict[str, Any]]:
    """The added tokens by text."""
    return {t["content"]: t for t in json.loads(files.tokenizer_json)["added_tokens"]}


def edit(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change a JSON file in place."""
    fields = json.loads(path.read_text(encoding="utf-8"))
    change(fields)
    write_json(path, fields)


def test_a_directory_without_a_tokenizer(tmp_path: Path) -> None:
    """It has none, which is no mistake."""
    write_json(tmp_path / "tokenizer_config.json", {"mask_token": "<mask>"})
    assert read_tokenizer_files(tmp_path, "bert") is None


def test_a_complete_file_stays_as_it_is() -> None:
    """To the byte."""
    files = read(minilm_directory(), "bert")
    assert files.tokenizer_json == (minilm_directory() / "tokenizer.json").read_bytes()
    assert files.mask_token == "[MASK]"  # noqa: S105 - a token of another kind


@pytest.mark.parametrize(
    ("name", "pair"),
    [
        ("BERT", "[CLS] . [SEP] . [SEP]"),
        ("RoBERTa", "<s> . </s> </s> . </s>"),
        ("CamemBERT", "<s> . </s> </s> . </s>"),
        ("ALBERT", "[CLS] . [SEP] . [SEP]"),
        ("ESM-2", "<cls> . <eos> . <eos>"),
    ],
)
def test_two_texts(name: str, pair: str, tmp_path: Path) -> None:
    """Each class has its own way to frame and part them."""
    encoding = encode(read(write(tmp_path, name), KINDS[name].model_type), "A", "K")
    framing = zip(encoding.tokens, encoding.special_tokens_mask, strict=True)
    tokens = [token if special else "." for token, special in framing]
    assert " ".join(tokens).replace(". .", ".") == pair


def test_ids_of_fairseq(tmp_path: Path) -> None:
    """As published: 32,000 pieces give CamemBERT 32,005 ids; 250,000 give XLM-RoBERTa 250,002."""
    processor = SentencePieceProcessor(model_proto=sentence_pieces())
    names = [processor.id_to_piece(i) for i in range(processor.get_piece_size())]
    count = len(names)
    camembert = load(read(write(tmp_path / "camembert", "CamemBERT"), "camembert"))
    special = ("<pad>", "<unk>", "<s>", "</s>", "<mask>")
    assert [camembert.token_to_id(token) for token in special] == [1, 3, 5, 6, count + 4]
    assert camembert.get_vocab_size() == count + 5
    xlm_roberta = load(read(write(tmp_path / "xlm", "XLM-RoBERTa"), "xlm-roberta"))
    special = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")
    assert [xlm_roberta.token_to_id(token) for token in special] == [0, 1, 2, 3, count + 1]
    assert xlm_roberta.get_vocab_size() == count + 2
    for index in range(3, count):
        assert camembert.token_to_id(names[index]) == index + 4
        assert xlm_roberta.token_to_id(names[index]) == index + 1


def test_robertas_mask_takes_the_space_before_it(tmp_path: Path) -> None:
    """Where nothing says otherwise; a description of the token does."""
    byte_pair_files(tmp_path)
    with_space = encode(read(tmp_path, "roberta"), "a <mask>").tokens
    assert with_space == ["<s>", "a", " <mask>", "</s>"]
    write_json(tmp_path / "added_tokens.json", {"<mask>": 4})
    assert encode(read(tmp_path, "roberta"), "a <mask>").tokens == with_space
    described = {"content": "<mask>", "lstrip": False, "special": True, "normalized": False}
    write_json(tmp_path / "tokenizer_config.json", {"added_tokens_decoder": {"4": described}})
    tokens = encode(read(tmp_path, "roberta"), "a <mask>").tokens
    assert tokens == ["<s>", "a", "Ġ", "<mask>", "</s>"]


@pytest.mark.parametrize(
    ("options", "tokens"),
    [
        ({}, ["e", "中", "文"]),
        ({"do_lower_case": False, "strip_accents": False}, ["[UNK]", "中", "文"]),
        ({"do_lower_case": False, "strip_accents": True}, ["[UNK]", "中", "文"]),
        ({"strip_accents": False}, ["é", "中", "文"]),
        ({"tokenize_chinese_chars": False}, ["[UNK]"]),
        ({"do_lower_case": False, "strip_accents": None}, ["[UNK]", "中", "文"]),
        ({"do_lower_case": None}, ["e", "中", "文"]),
        ({"do_lower_case": False, "tokenizer_class": "PreTrainedTokenizerFast"}, ["e", "中", "文"]),
    ],
)
def test_settings_beside_a_tokenizer_json(
    options: dict[str, Any], tokens: list[str], tmp_path: Path
) -> None:
    """What tokenizer_config.json says goes, unless its class is one that only does the file."""
    vocabulary = {token: i for i, token in enumerate([*BERT_SPECIAL, "e", "é", "中", "文"])}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))  # noqa: S106 - a token of another kind
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    write_json(tmp_path / "tokenizer_config.json", options)
    framed = encode(read(tmp_path, "bert"), "É中文").tokens
    assert [token for token in framed if token not in {"[CLS]", "[SEP]"}] == tokens


def test_capital_letters_stay_where_nothing_is_said(tmp_path: Path) -> None:
    """A tokenizer.json that keeps them is not lowercased by a class's default."""
    directory = write(tmp_path, "BERT, cased", fast=True)
    (directory / "tokenizer_config.json").unlink()
    assert json.loads(read(directory, "bert").tokenizer_json)["normalizer"]["lowercase"] is False


def test_a_space_before_the_text_by_setting(tmp_path: Path) -> None:
    """add_prefix_space goes for byte-level BPE in a tokenizer.json too."""
    directory = write(tmp_path, "RoBERTa", fast=True)
    assert encode(read(directory, "roberta"), "a").tokens[1] == "a"
    edit(directory / "tokenizer_config.json", lambda fields: fields.update(add_prefix_space=True))
    assert encode(read(directory, "roberta"), "a").tokens[1:-1] in (["Ġa"], ["Ġ", "a"])


def test_no_space_before_words_by_setting(tmp_path: Path) -> None:
    """SentencePiece then reads words without the mark of their start."""
    directory = write(tmp_path, "XLM-RoBERTa")
    assert "▁" in encode(read(directory, "xlm-roberta"), "capital").tokens[1]
    write_json(directory / "tokenizer_config.json", {"add_prefix_space": False})
    encoding = encode(read(directory, "xlm-roberta"), "the capital")
    assert not any("▁" in token for token in encoding.tokens)
    assert encoding.ids == AutoTokenizer.from_pretrained(directory)("the capital")["input_ids"]


def test_offsets_leave_the_space_out_or_not(tmp_path: Path) -> None:
    """trim_offsets says whether a byte-level token begins at its space or behind it."""
    byte_pair_files(tmp_path)
    assert encode(read(tmp_path, "roberta"), "a .").offsets[2:-1] in ([(2, 3)], [(2, 2), (2, 3)])
    write_json(tmp_path / "tokenizer_config.json", {"trim_offsets": False})
    assert encode(read(tmp_path, "roberta"), "a .").offsets[2:-1] in ([(1, 3)], [(1, 2), (2, 3)])


def test_a_bare_tokenizer_json_is_completed(tmp_path: Path) -> None:
    """Where the class is known: special tokens marked, texts framed, nothing else changed."""
    path = write(tmp_path, "BERT", fast=True) / "tokenizer.json"
    whole = read(path.parent, "bert")
    (path.parent / "tokenizer_config.json").unlink()
    edit(path, lambda fields: fields.update(added_tokens=[], post_processor=None))
    completed = read(path.parent, "bert")
    assert json.loads(completed.tokenizer_json) == json.loads(whole.tokenizer_json)
    unknown = read(path.parent, None)
    assert unknown.mask_token == "[MASK]"  # noqa: S105 - a token of another kind
    assert encode(unknown, "a").tokens == ["a"]
    assert list(added_tokens(unknown)) == ["[MASK]"]


def test_tokens_added_beside_the_vocabulary(tmp_path: Path) -> None:
    """added_tokens.json and added_tokens_decoder continue the vocabulary, in the order of ids."""
    directory = write(tmp_path, "BERT")
    size = (directory / "vocab.txt").read_bytes().count(b"\n")
    write_json(directory / "added_tokens.json", {"[TWO]": size + 1, "[ONE]": size})
    write_json(directory / "special_tokens_map.json", {"additional_special_tokens": ["[TWO]"]})
    files = read(directory, "bert")
    assert encode(files, "[ONE][TWO]").ids[1:-1] == [size, size + 1]
    assert not added_tokens(files)["[ONE]"]["special"]
    oracle = AutoTokenizer.from_pretrained(directory)
    for text in ("[ONE][TWO]", "a[one] b", "[two]"):
        assert encode(files, text).ids == oracle(text)["input_ids"]
    write_json(directory / "added_tokens.json", {"[TWO]": size + 1})
    with pytest.raises(ValueError, match=rf"leaves no place for '\[TWO\]' at the id {size + 1}"):
        read(directory, "bert")
    write_json(directory / "added_tokens.json", {"[MASK]": 7})
    with pytest.raises(ValueError, match=r"gives '\[MASK\]' the id 4, and a file beside it 7"):
        read(directory, "bert")


def test_extra_special_tokens_are_marked(tmp_path: Path) -> None:
    """By either name of the list; those the vocabulary lacks are no tokens of the model."""
    directory = write(tmp_path, "BERT")
    for key in ("additional_special_tokens", "extra_special_tokens"):
        write_json(directory / "tokenizer_config.json", {key: ["the", "[NEW]"]})
        marked = added_tokens(read(directory, "bert"))
        assert marked["the"]["special"] is True
        assert "[NEW]" not in marked


@pytest.mark.parametrize(
    ("special", "mask_token"),
    [
        (["[MASK]", "other"], "[MASK]"),
        (["<mask>"], "<mask>"),
        ([], None),
        (["[MASK]", "<mask>"], None),
    ],
)
def test_the_mask_of_a_class_unknown(
    special: list[str], mask_token: str | None, tmp_path: Path
) -> None:
    """It is found by its usual names if it is clear which; or else a file has to name it."""
    vocabulary = {"[MASK]": 0, "<mask>": 1, "other": 2}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="other"))  # noqa: S106 - a token of another kind
    tokenizer.add_special_tokens(special)
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    if mask_token:
        assert read(tmp_path, None).mask_token == mask_token
    else:
        with pytest.raises(ValueError, match=r"has both \[MASK\] and <mask>; name one of them as"):
            read(tmp_path, None)
    write_json(tmp_path / "special_tokens_map.json", {"mask_token": {"content": "other"}})
    assert read(tmp_path, None).mask_token == "other"  # noqa: S105 - a token of another kind


def test_code_of_a_checkpoint_is_not_run(tmp_path: Path) -> None:
    """A tokenizer class that a directory brings along is a name and nothing else."""
    directory = write(tmp_path, "BERT", fast=True)
    plain = read(directory, "bert")
    (directory / "tokenization_own.py").write_text("raise SystemExit\n")
    auto_map = {"AutoTokenizer": ["tokenization_own.Own", None]}
    edit(directory / "tokenizer_config.json", lambda fields: fields.update(auto_map=auto_map))
    assert read(directory, "bert") == plain


Break = Callable[[Path], object]


def cut(name: str) -> Break:
    """Keep the first half of a file."""
    return lambda d: (d / name).write_bytes(
        (d / name).read_bytes()[: (d / name).stat().st_size // 2]
    )


def put(name: str, content: bytes) -> Break:
    """Replace a file."""
    return lambda d: (d / name).write_bytes(content)


def remove(name: str) -> Break:
    """Delete a file."""
    return lambda d: (d / name).unlink()


def settings(**fields: Any) -> Break:
    """Replace tokenizer_config.json."""
    return lambda d: write_json(d / "tokenizer_config.json", fields)


BROKEN: dict[str, tuple[str, bool, Break, str]] = {
    "JSON cut short": (
        "BERT",
        True,
        cut("tokenizer.json"),
        r"tokenizer\.json cannot be read as a ",
    ),
    "JSON of something else": ("BERT", True, put("tokenizer.json", b"[]"), r"cannot be read as a "),
    "JSON not UTF-8": (
        "BERT",
        True,
        put("tokenizer.json", b"\xff"),
        r"tokenizer\.json is not UTF-8",
    ),
    "settings not JSON": (
        *("BERT", True, put("tokenizer_config.json", b"{")),
        r"tokenizer_config\.json is not valid JSON",
    ),
    "settings of something else": (
        *("BERT", False, put("tokenizer_config.json", b"[]")),
        r"tokenizer_config\.json must hold a JSON object",
    ),
    "setting of a wrong kind": (
        *("BERT", False, settings(do_lower_case="no")),
        r"tokenizer_config\.json: do_lower_case must be true or false, not 'no'",
    ),
    "token of a wrong kind": ("BERT", False, settings(mask_token=7), r"describes a token as 7"),
    "decoder of a wrong kind": (
        *("BERT", False, settings(added_tokens_decoder=[])),
        r"added_tokens_decoder must be an object, not \[\]",
    ),
    "id of a wrong kind": (
        *("BERT", False, put("added_tokens.json", b'{"x": "y"}')),
        r"added_tokens\.json gives a token the id 'y'",
    ),
    "mask of another tokenizer": (
        *("BERT", True, settings(mask_token="<mask>")),  # noqa: S106 - a token of another kind
        r"tokenizer\.json lacks the mask token <mask>, which a file beside it names",
    ),
    "vocab.txt without a mask": (
        *("BERT", False, put("vocab.txt", b"[PAD]\n[UNK]\n[CLS]\n[SEP]\n")),
        r"vocab\.txt has no mask token: \[MASK\] and <mask> are not in it",
    ),
    "vocab.txt cut short": (
        *("BERT", False, put("vocab.txt", b"[MASK]\n[UNK]\n[CLS]\n[S")),
        r"vocab\.txt lacks the special token \[SEP\]",
    ),
    "vocab.txt empty": ("BERT", False, put("vocab.txt", b""), r"vocab\.txt is empty"),
    "vocab.txt not UTF-8": ("ESM-2", False, put("vocab.txt", b"\xff"), r"vocab\.txt is not UTF-8"),
    "vocab.json cut short": (
        "RoBERTa",
        False,
        cut("vocab.json"),
        r"vocab\.json is not (valid|UTF-8)",
    ),
    "vocab.json with words for ids": (
        *("RoBERTa", False, put("vocab.json", b'{"a": "b"}')),
        r"vocab\.json must give each token an id",
    ),
    "vocab.json with an id twice": (
        *("RoBERTa", False, put("vocab.json", b'{"a": 0, "b": 0}')),
        r"vocab\.json gives two tokens the same id",
    ),
    "merges of another vocabulary": (
        *("RoBERTa", False, put("merges.txt", b"#version: 0.2\na l\nal xyz\n")),
        r"merges\.txt does not fit its vocabulary: line 3 needs 'xyz', which vocab\.json lacks",
    ),
    "merges cut short": (
        *("RoBERTa", False, put("merges.txt", b"#version: 0.2\na l\nal")),
        r"merges\.txt, line 3: not two pieces",
    ),
    "no merges": ("RoBERTa", False, remove("merges.txt"), r"merges\.txt does not exist"),
    "SentencePiece garbage": (
        *("CamemBERT", False, put("sentencepiece.bpe.model", b"\x00\xff" * 40)),
        r"sentencepiece\.bpe\.model is not a SentencePiece model",
    ),
    "SentencePiece empty": (
        *("ALBERT", False, put("spiece.model", b"")),
        r"spiece\.model is not a SentencePiece model, or was cut short",
    ),
    "SentencePiece cut short": (
        *("XLM-RoBERTa", False, cut("sentencepiece.bpe.model")),
        r"sentencepiece\.bpe\.model is not a SentencePiece model, or was cut short",
    ),
    "SentencePiece of another kind": (
        "ALBERT",
        False,
        lambda d: (d / "spiece.model").write_bytes(
            sentence_pieces(model_type="bpe", vocab_size=300)
        ),
        r"spiece\.model is a SentencePiece model of another kind than Unigram",
    ),
    "SentencePiece of another family": (
        "XLM-RoBERTa",
        False,
        lambda d: (d / "sentencepiece.bpe.model").write_bytes(
            sentence_pieces(bos_id=-1, eos_id=-1)
        ),
        r"does not begin with three special pieces, as XLM-RoBERTa's does",
    ),
    "class of another language": (
        *("BERT", False, settings(tokenizer_class="BertJapaneseTokenizer")),
        r"has vocab\.txt but no tokenizer\.json, and .* not for BertJapaneseTokenizer$",
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_broken_files(case: str, tmp_path: Path) -> None:
    """One clear sentence that names the file."""
    name, fast, spoil, message = BROKEN[case]
    directory = write(tmp_path, name, fast=fast)
    read(directory, KINDS[name].model_type)
    spoil(directory)
    with pytest.raises(ValueError, match=message) as caught:
        read(directory, KINDS[name].model_type)
    assert str(directory) in str(caught.value)
    assert len(str(caught.value)) < 500


def test_vocabulary_files_of_a_model_type_unknown(tmp_path: Path) -> None:
    """How to read them is not guessed."""
    directory = write(tmp_path, "BERT")
    with pytest.raises(ValueError, match=r"but no tokenizer\.json, .* not for model_type 'own'$"):
        read(directory, "own")
    write_json(directory / "tokenizer_config.json", {"tokenizer_class": "BertTokenizerFast"})
    assert read(directory, "own").mask_token == "[MASK]"  # noqa: S105 - a token of another kind
    write_json(directory / "tokenizer_config.json", {"tokenizer_class": "PreTrainedTokenizerFast"})
    assert read(directory, "bert").mask_token == "[MASK]"  # noqa: S105 - a token of another kind


def test_a_checkpoint_carries_its_mask(tmp_path: Path) -> None:
    """load_checkpoint reads the tokenizer, and says what is wrong with it as its own."""
    save_checkpoint(tmp_path, random_encoder(small_config()), TOKENIZER_JSON)
    assert load_checkpoint(tmp_path).mask_token == "[MASK]"  # noqa: S105 - a token of another kind
    (tmp_path / "tokenizer.json").write_bytes(TOKENIZER_JSON.replace(b"[MASK]", b"[BLANK]"))
    with pytest.raises(CheckpointError, match=r"tokenizer\.json has no mask token"):
        load_checkpoint(tmp_path)
