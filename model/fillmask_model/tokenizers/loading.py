"""The tokenizer of a checkpoint, as transformers reads it.

A tokenizer has up to six files, and its class in transformers decides which of them count, and for
what. So transformers reads them, and the bundle gets the tokenizer.json that it makes of them. It
reads copies of the checked files in a temporary directory, runs no code of the checkpoint and needs
no network.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

from google.protobuf.message import DecodeError
from sentencepiece import sentencepiece_model_pb2
from tokenizers import Tokenizer

from fillmask_model.files import check_file, listed, read_object, read_text
from fillmask_model.tokenizers.amino_acids import build_amino_acids
from fillmask_model.tokenizers.probe import TEXTS, check_tokenizer

TOKENIZER_FILE, CONFIG_FILE = "tokenizer.json", "tokenizer_config.json"
ADDED_TOKENS_FILE = "added_tokens.json"
SETTINGS_FILES = (CONFIG_FILE, "special_tokens_map.json", ADDED_TOKENS_FILE)
VOCABULARY_FILES = (
    *("bpe.codes", "merges.txt", "sentencepiece.bpe.model", "spiece.model", "vocab.json"),
    "vocab.txt",
)
MASK_TOKENS = ("[MASK]", "<mask>")
# settings with which transformers would read other files, or run code
_ELSEWHERE = (
    "auto_map",
    "merges",
    "name_or_path",
    "tokenizer_object",
    "trust_remote_code",
    "vocab",
)
_IGNORED = {"never_split": None, "do_basic_tokenize": True}
_AMINO_ACIDS = "EsmTokenizer"
_GENERIC = "PreTrainedTokenizerFast"


@dataclass(frozen=True, slots=True)
class TokenizerFiles:
    """Tokenizer of a checkpoint.

    Attributes:
        tokenizer_json: content of a complete tokenizer.json, which marks every special token.
        reference: the tokenizer in transformers. None for a checkpoint of fillmask, whose only
            file is tokenizer.json.
        notes: what the user should know, one sentence each.
    """

    tokenizer_json: bytes
    mask_token: str
    reference: Any = None
    notes: tuple[str, ...] = ()


def read_tokenizer_files(
    directory: Path, model_type: str | None, *, own: bool = False
) -> TokenizerFiles | None:
    """Read the tokenizer of a checkpoint.

    Args:
        model_type: model type in config.json, which determines the class if no file names one.
        own: whether fillmask has written the checkpoint.

    Returns:
        The tokenizer, or None for a directory without one.

    Raises:
        ValueError: a file is missing or broken, transformers can't read the files, their class is
            code in Python, or they have no mask token. The message names the file.
    """
    path = directory / TOKENIZER_FILE
    vocabularies = [name for name in VOCABULARY_FILES if (directory / name).is_file()]
    if not (path.is_file() or vocabularies):
        return None
    stored = read_text(path).encode() if path.is_file() else None
    if stored is not None:
        check_tokenizer(path, stored)
    if own and stored is not None:
        return TokenizerFiles(stored, _usual_mask(path, Tokenizer.from_str(stored.decode())))
    settings = {
        name: read_object(directory / name)
        for name in SETTINGS_FILES
        if (directory / name).is_file()
    }
    if kind := settings.get(CONFIG_FILE, {}).get("word_tokenizer_type"):
        raise ValueError(
            f"{directory / CONFIG_FILE}: word_tokenizer_type must not be set, because it needs "
            f"BertJapaneseTokenizer, which is code in Python and has no {TOKENIZER_FILE} "
            f"(got {kind!r}); save an equal tokenizer as {TOKENIZER_FILE} and remove the field"
        )
    with tempfile.TemporaryDirectory() as staging:
        _stage(directory, Path(staging), vocabularies, stored, settings, model_type)
        reference = _load(directory, staging)
    found = _checked_class(directory, reference, vocabularies)
    fields: dict[str, Any] = json.loads(found.to_str()) | {"truncation": None, "padding": None}
    notes = [
        f"{directory / CONFIG_FILE}: {name} has no effect, as in transformers' {_name(reference)}"
        for name, default in _IGNORED.items()
        if settings.get(CONFIG_FILE, {}).get(name) not in (None, default, [])
    ]
    if fields["model"].get("dropout"):
        fields["model"]["dropout"] = None
        notes.append(f"{path}: the dropout of BPE is for training, so the bundle has none")
    where = path if stored is not None else directory / vocabularies[-1]
    mask_token = _complete(where, fields, reference, _known_tokens(found, stored, settings))
    tokenizer_json = json.dumps(fields, ensure_ascii=False).encode()
    check_tokenizer(where, tokenizer_json)
    if stored is not None:
        notes += _differences(path, stored, tokenizer_json, reference)
    return TokenizerFiles(tokenizer_json, mask_token, reference, tuple(notes))


def _stage(
    directory: Path,
    staging: Path,
    vocabularies: list[str],
    stored: bytes | None,
    settings: dict[str, dict[str, Any]],
    model_type: str | None,
) -> None:
    for name in vocabularies:
        if name.endswith(".model"):
            _check_sentence_pieces(directory / name)
            shutil.copyfile(directory / name, staging / name)
            continue
        text = read_text(directory / name)
        if not text.strip():
            raise ValueError(f"{directory / name} is empty; download it again")
        if name.endswith(".json"):
            ids = list(read_object(directory / name).values())
            if not all(type(one) is int for one in ids) or len(set(ids)) < len(ids):
                raise ValueError(f"{directory / name} must map each token to a unique whole number")
        (staging / name).write_text(text, encoding="utf-8", newline="")
    if stored is not None:
        (staging / TOKENIZER_FILE).write_bytes(stored)
    for name, fields in settings.items():
        kept = {
            key: value
            for key, value in fields.items()
            if not key.endswith("_file") and key not in _ELSEWHERE
        }
        (staging / name).write_text(json.dumps(kept), encoding="utf-8")
    config = read_object(directory / "config.json") if (directory / "config.json").exists() else {}
    kept = {"model_type": model_type, "tokenizer_class": config.get("tokenizer_class")}
    (staging / "config.json").write_text(json.dumps({k: v for k, v in kept.items() if v}))


def _check_sentence_pieces(path: Path) -> None:
    """Reject a broken SentencePiece model, which transformers reports as a tiktoken file."""
    check_file(path)
    model: Any = sentencepiece_model_pb2.ModelProto()  # type: ignore[attr-defined]  # created at import
    try:
        model.ParseFromString(path.read_bytes())
    except DecodeError:
        model.Clear()
    if not (model.pieces and model.HasField("trainer_spec") and model.HasField("normalizer_spec")):
        raise ValueError(f"{path} is not a complete SentencePiece model; download it again")


def _load(directory: Path, staging: str) -> Any:
    import transformers  # noqa: PLC0415 - takes 1.7 s, and fillmask's own checkpoints don't need it

    transformers.logging.set_verbosity_error()
    try:
        return transformers.AutoTokenizer.from_pretrained(
            staging, local_files_only=True, trust_remote_code=False
        )
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        reason = " ".join(str(error).replace(f"{staging}/", "").split())[:200].rstrip(".")
        raise ValueError(
            f"{directory}: transformers cannot read the tokenizer ({type(error).__name__}: "
            f"{reason}); download its files again, or save the tokenizer as {TOKENIZER_FILE} and "
            f"set tokenizer_class to {_GENERIC} in {CONFIG_FILE}"
        ) from None


def _checked_class(directory: Path, reference: Any, vocabularies: list[str]) -> Tokenizer:
    """Return the tokenizer as an object of the tokenizers library."""
    name = _name(reference)
    if not reference.is_fast and name != _AMINO_ACIDS:
        raise ValueError(
            f"{directory}: {name} is code in Python, which a bundle cannot contain; save an equal "
            f"tokenizer as {TOKENIZER_FILE}, and set tokenizer_class to {_GENERIC} in {CONFIG_FILE}"
        )
    needed = [
        one for key, one in reference.vocab_files_names.items() if key != "tokenizer_file"
    ]  # without them, transformers makes a vocabulary of special tokens only
    missing = [one for one in needed if not (directory / one).is_file()]
    if missing and not (reference.is_fast and (directory / TOKENIZER_FILE).is_file()):
        raise ValueError(
            f"{directory} must contain {listed(missing)} or {TOKENIZER_FILE} for {name} (got "
            f"{listed(vocabularies)}); add it, or name another tokenizer_class in {CONFIG_FILE}"
        )
    if name == _AMINO_ACIDS:
        return build_amino_acids(reference)
    backend: Tokenizer = reference.backend_tokenizer
    return backend


def _known_tokens(
    found: Tokenizer, stored: bytes | None, settings: dict[str, dict[str, Any]]
) -> set[str]:
    """Return the tokens that the files contain.

    To other special tokens of its class, transformers gives ids after those of the vocabulary, for
    which the model has no trained embeddings.
    """
    known = set(found.get_vocab(with_added_tokens=False)) | set(settings.get(ADDED_TOKENS_FILE, {}))
    described = settings.get(CONFIG_FILE, {}).get("added_tokens_decoder") or {}
    known |= {one["content"] for one in described.values()}
    if stored is not None:
        known |= {one["content"] for one in json.loads(stored).get("added_tokens") or ()}
    return known


def _complete(path: Path, fields: dict[str, Any], reference: Any, known: set[str]) -> str:
    """Remove tokens that the files lack, mark the mask as special and return its text."""
    fields["added_tokens"] = [one for one in fields["added_tokens"] if one["content"] in known]
    complete = Tokenizer.from_str(json.dumps(fields))
    names = {token_id: name for name, token_id in complete.get_vocab().items()}
    for token_id in map(int, complete.encode("", "").ids):
        if token_id not in names:
            token = reference.convert_ids_to_tokens(token_id)
            raise ValueError(
                f"{path} must contain the special token {token}; add it, or name the checkpoint's "
                f"own special tokens in {CONFIG_FILE}"
            )
    mask_token = reference.mask_token
    if mask_token is None:
        mask_token = _usual_mask(path, complete)
    elif mask_token not in known:
        raise ValueError(
            f"{path} must contain {mask_token}, the mask_token of {_name(reference)}; name the "
            f"checkpoint's own mask_token in {CONFIG_FILE}"
        )
    marked = {one["content"]: one for one in fields["added_tokens"]}
    if mask_token not in marked:
        flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
        marked[mask_token] = {
            "id": complete.token_to_id(mask_token),
            "content": mask_token,
            **flags,
        }
    marked[mask_token]["special"] = True
    fields["added_tokens"] = sorted(marked.values(), key=lambda one: one["id"])
    return str(mask_token)


def _usual_mask(path: Path, tokenizer: Tokenizer) -> str:
    """Return the usual name of a mask that the tokenizer has, if possible as a special token."""
    added = tokenizer.get_added_tokens_decoder().values()
    special = [one.content for one in added if one.special and one.content in MASK_TOKENS]
    found = special or [name for name in MASK_TOKENS if tokenizer.token_to_id(name) is not None]
    if len(found) == 1:
        return found[0]
    if found:
        raise ValueError(
            f"{path} must have one mask token (got {' and '.join(MASK_TOKENS)}); set mask_token in "
            f"{CONFIG_FILE}"
        )
    raise ValueError(
        f"{path} has no mask token; add {' or '.join(MASK_TOKENS)}, or set mask_token in "
        f"{CONFIG_FILE}"
    )


def _differences(path: Path, stored: bytes, tokenizer_json: bytes, reference: Any) -> list[str]:
    """Return a note if a class of transformers replaces a part of tokenizer.json."""
    file, made = (Tokenizer.from_str(one.decode()) for one in (stored, tokenizer_json))
    file.no_truncation()
    file.no_padding()
    for text in TEXTS:
        theirs, ours = (one.encode(text).tokens for one in (file, made))
        if theirs != ours:
            pairs = zip_longest(theirs, ours)
            place = next(index for index, (one, other) in enumerate(pairs) if one != other)
            made_of, written = (
                " ".join(one[place : place + 4]) or "nothing" for one in (ours, theirs)
            )
            note = (
                f"{path}: as in transformers, {_name(reference)} replaces a part of the file, so "
                f"that {text[:40]!r} has {made_of} instead of {written}; to use the file as it is, "
                f"set tokenizer_class to {_GENERIC} in {CONFIG_FILE}"
            )
            return [note]
    return []


def _name(reference: Any) -> str:
    return type(reference).__name__
