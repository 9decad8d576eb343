"""Completion of tokenizer.json; a complete file is returned byte for byte.

transformers rebuilds the file from the defaults of its class instead, and loses its settings for
case and normalization.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Tokenizer

from model.files import read_text
from model.tokenizers.settings import FLAGS, TokenizerSettings

_NORMALIZER_FIELDS = {
    "do_lower_case": "lowercase",
    "strip_accents": "strip_accents",
    "tokenize_chinese_chars": "handle_chinese_chars",
}


class TokenizerDraft:
    """Draft of a tokenizer.json, completed step by step.

    Args:
        path: the file that errors name.
        text: the content of a tokenizer.json.

    Attributes:
        path: as above.
        ids: the vocabulary, including added tokens.

    Raises:
        ValueError: the text is not a tokenizer.
    """

    def __init__(self, path: Path, text: str) -> None:
        self.path = path
        self._text = text
        tokenizer = self._load(text)
        self.ids: dict[str, int] = tokenizer.get_vocab()
        # as the library writes it today: older files lack fields
        self._fields: dict[str, Any] = json.loads(tokenizer.to_str())
        self._added = {token["content"]: token for token in self._fields["added_tokens"]}

    @classmethod
    def read(cls, path: Path) -> TokenizerDraft:
        """Read a tokenizer.json; raises ValueError as above, or for an unreadable file."""
        return cls(path, read_text(path))

    @property
    def special(self) -> set[str]:
        """The tokens marked as special."""
        return {text for text, token in self._added.items() if token["special"]}

    @property
    def framed(self) -> bool:
        """True if special tokens are put around a text."""
        return self._fields["post_processor"] is not None

    def apply(self, settings: TokenizerSettings) -> None:
        """Apply the settings to BERT's normalizer and to byte-level BPE.

        What they do not mention stays as the file has it.

        Raises:
            ValueError: a setting is not true or false.
        """
        normalizer, splitter = self._fields["normalizer"], self._fields["pre_tokenizer"]
        if normalizer and normalizer["type"] == "BertNormalizer":
            for option, field in _NORMALIZER_FIELDS.items():
                # null strips accents with capital letters; for the other options it says nothing
                open_accents = option == "strip_accents" and option in settings.options
                default = None if open_accents else normalizer[field]
                self._set(normalizer, field, settings.flag(option, default=default))
        if splitter and splitter["type"] == "ByteLevel":
            value = settings.flag("add_prefix_space", default=splitter["add_prefix_space"])
            self._set(splitter, "add_prefix_space", value)

    def add(self, token: AddedToken, token_id: int) -> None:
        """Match a token in text as one piece with this id.

        Raises:
            ValueError: the vocabulary gives it another id.
        """
        if self.ids.setdefault(token.content, token_id) != token_id:
            raise ValueError(
                f"{self.path} gives {token.content!r} the id {self.ids[token.content]}, and a file "
                f"beside it {token_id}"
            )
        if token.content not in self._added:
            entry = {"id": token_id, "content": token.content}
            self._added[token.content] = entry | {flag: getattr(token, flag) for flag in FLAGS}
            self._text = ""

    def mark_special(self, token: AddedToken) -> None:
        """Mark a token as special if the vocabulary has its text."""
        if token.content in self.ids:
            self.add(token, self.ids[token.content])
            self._set(self._added[token.content], "special", value=True)

    def frame(self, post_processor: dict[str, Any]) -> None:
        """Put the special tokens of a post-processor around texts.

        Args:
            post_processor: of type TemplateProcessing or RobertaProcessing, as in a tokenizer.json,
                but with the text of a token for each id.

        Raises:
            ValueError: the vocabulary lacks one of the tokens.
        """
        for end in ("cls", "sep"):
            if end in post_processor:
                text, token = post_processor[end]
                post_processor[end] = [text, self.special_id(token)]
        for entry in post_processor.get("special_tokens", {}).values():
            entry["ids"] = [self.special_id(token) for token in entry["ids"]]
        self._set(self._fields, "post_processor", post_processor)

    def special_id(self, text: str) -> int:
        """Return the id of a special token; raises ValueError if the vocabulary lacks it."""
        if text not in self.ids:
            raise ValueError(f"{self.path} lacks the special token {text}")
        return self.ids[text]

    def content(self) -> bytes:
        """Return the tokenizer.json.

        Raises:
            ValueError: the tokenizers library would give an added token another id.
        """
        if self._text:
            return self._text.encode()
        added = sorted(self._added.values(), key=lambda token: token["id"])
        text = json.dumps(self._fields | {"added_tokens": added}, ensure_ascii=False)
        tokenizer = self._load(text)
        for token in added:
            if (token_id := tokenizer.token_to_id(token["content"])) != token["id"]:
                raise ValueError(
                    f"{self.path} leaves no place for {token['content']!r} at the id "
                    f"{token['id']}, only at {token_id}"
                )
        return text.encode()

    def _set(self, fields: dict[str, Any], name: str, value: object) -> None:
        if fields[name] != value:
            fields[name] = value
            self._text = ""

    def _load(self, text: str) -> Tokenizer:
        try:
            return Tokenizer.from_str(text)
        except Exception as error:  # noqa: BLE001 - tokenizers raises nothing narrower
            raise ValueError(f"{self.path} cannot be read as a tokenizer: {error}") from None
