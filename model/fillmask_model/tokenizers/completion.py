"""Completion of an incomplete tokenizer.json.

A complete file stays the same byte for byte. transformers instead rebuilds the file from the
defaults of the tokenizer class and loses the settings for case and normalization.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Tokenizer

from fillmask_model.files import read_text
from fillmask_model.tokenizers.probe import check_tokenizer
from fillmask_model.tokenizers.settings import FLAGS, TokenizerSettings

_NORMALIZER_FIELDS = {
    "do_lower_case": "lowercase",
    "strip_accents": "strip_accents",
    "tokenize_chinese_chars": "handle_chinese_chars",
}


class TokenizerDraft:
    """Draft of a tokenizer.json, completed step by step.

    Args:
        path: file to name in error messages.
        text: content of a tokenizer.json.

    Attributes:
        ids: ids of the vocabulary and of the added tokens, by text.

    Raises:
        ValueError: the text is not a tokenizer.
    """

    def __init__(self, path: Path, text: str) -> None:
        self.path = path
        self._text = text
        tokenizer = self._load(text)
        self.ids: dict[str, int] = tokenizer.get_vocab()
        # the tokenizers library adds fields that older files lack
        self._fields: dict[str, Any] = json.loads(tokenizer.to_str())
        self._added = {token["content"]: token for token in self._fields["added_tokens"]}

    @classmethod
    def read(cls, path: Path) -> TokenizerDraft:
        """Read a tokenizer.json.

        Raises:
            ValueError: the file is missing, not UTF-8 or not a tokenizer, or it takes too much time
                or memory.
        """
        text = read_text(path)
        check_tokenizer(path, text.encode())
        return cls(path, text)

    @property
    def special(self) -> set[str]:
        """Text of the tokens with the flag `special`."""
        return {text for text, token in self._added.items() if token["special"]}

    @property
    def framed(self) -> bool:
        """Presence of a post-processor, which can add special tokens around a text."""
        return self._fields["post_processor"] is not None

    def apply(self, settings: TokenizerSettings) -> None:
        """Apply the settings to BERT's normalizer and to byte-level BPE.

        Options without a setting keep their values.

        Raises:
            ValueError: a setting is not true or false.
        """
        normalizer, splitter = self._fields["normalizer"], self._fields["pre_tokenizer"]
        if normalizer and normalizer["type"] == "BertNormalizer":
            for option, field in _NORMALIZER_FIELDS.items():
                # only strip_accents may be null, which means the value of lowercase
                open_accents = option == "strip_accents" and option in settings.options
                default = None if open_accents else normalizer[field]
                self._set(normalizer, field, settings.flag(option, default=default))
        if splitter and splitter["type"] == "ByteLevel":
            value = settings.flag("add_prefix_space", default=splitter["add_prefix_space"])
            self._set(splitter, "add_prefix_space", value)

    def add(self, token: AddedToken, token_id: int) -> None:
        """Add a token that the tokenizer matches as one piece.

        Raises:
            ValueError: the vocabulary has another id for the token.
        """
        if self.ids.setdefault(token.content, token_id) != token_id:
            raise ValueError(
                f"{token.content!r} must have the same id in {self.path} and in the other "
                f"tokenizer files (got {self.ids[token.content]} and {token_id})"
            )
        if token.content not in self._added:
            entry = {"id": token_id, "content": token.content}
            self._added[token.content] = entry | {flag: getattr(token, flag) for flag in FLAGS}
            self._text = ""

    def mark_special(self, token: AddedToken) -> None:
        """Mark a token as special if the vocabulary contains it."""
        if token.content in self.ids:
            self.add(token, self.ids[token.content])
            self._set(self._added[token.content], "special", value=True)

    def frame(self, post_processor: dict[str, Any]) -> None:
        """Set the post-processor, which adds special tokens around texts.

        Args:
            post_processor: fields of a TemplateProcessing or RobertaProcessing in a tokenizer.json,
                but with the text of a token in place of each id.

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
        """Return the id of a special token.

        Raises:
            ValueError: the vocabulary lacks the token.
        """
        if text not in self.ids:
            raise ValueError(f"{self.path} must contain the special token {text}; add the token")
        return self.ids[text]

    def content(self) -> bytes:
        """Return the content of the tokenizer.json.

        Raises:
            ValueError: the tokenizers library assigns another id to an added token.
        """
        if self._text:
            return self._text.encode()
        added = sorted(self._added.values(), key=lambda token: token["id"])
        text = json.dumps(self._fields | {"added_tokens": added}, ensure_ascii=False)
        tokenizer = self._load(text)
        for token in added:
            if (token_id := tokenizer.token_to_id(token["content"])) != token["id"]:
                raise ValueError(
                    f"{self.path}: the added token {token['content']!r} must have the id "
                    f"{token_id} (got {token['id']})"
                )
        return text.encode()

    def _set(self, fields: dict[str, Any], name: str, value: object) -> None:
        if fields[name] != value:
            fields[name] = value
            self._text = ""

    def _load(self, text: str) -> Tokenizer:
        try:
            return Tokenizer.from_str(text)
        except Exception as error:  # noqa: BLE001 - tokenizers raises plain Exception
            raise ValueError(f"{self.path} must be a valid tokenizer.json ({error})") from None
