"""Scores of words in many languages, compared with transformers, and windows of long texts.

Which tokens are one word follows from the text here, not from the service's code.
"""

# ruff: noqa: RUF001 - other scripts are what this is about

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import pytest
import torch
import transformers
from tokenizers import Tokenizer, decoders, models, normalizers
from tokenizers import pre_tokenizers as pre
from tokenizers.processors import TemplateProcessing

from fillmask import FillMask
from fillmask.tasks.score.parameters import Variant
from fillmask_export.bundle.write_bundle import BundleMetadata, write_bundle
from fillmask_export.sample_texts import SampleTexts
from fillmask_model.checkpoints.checkpoint import load_checkpoint
from tests.model.samples import randomise
from tests.parity.served import TOLERANCE

ENGLISH = (
    "The unbelievable dog's 12,500 puppies weren't barking (loudly).",
    "Tokenization  of 3.14 words; is it hard?",
)
TEXTS = (
    *ENGLISH,
    "今天天气很好，我们去公园玩了3个小时。",
    "“北京”（Beijing）是中国的首都；2023年有2189万人！",
    "東京タワーは1958年に完成しました。カフェでコーヒーを飲む…",
    "か\u3099っこうと ﾊﾝｶｸ は「鳥」です",
    "กรุงเทพฯ เป็นเมืองหลวงที่สวยงาม 2 แห่ง ดื่มน้ำ",
    "I love 北京烤鸭 and sushi寿司very much in 2023年!",
    "Smiling 😀👍 faces of 𠮷野家 and wordsที่รัก",
    "ACGTTGCAAGCTTAGCATCGGATCTAGGCTAACGT is no word",
)
WORDS = "the un believ able dog pup pies bark ing loud ly Token ization word is 天气 公园 北京 首都"
WORDS += " 東京 タワー しま した です コーヒー กรุง เทพ เมือง หลวง ที่ สวย น้ำ 2023 年に 烤鸭 ACG TT"
# first words of the Unicode names of characters with no spaces around words
UNSPACED = ("CJK", "IDEOGRAPHIC", "HIRAGANA", "KATAKANA", "FULLWIDTH", "HALFWIDTH", "THAI")
MAX_WORD, MAX_TOKENS, CONTEXT = 16, 160, 20
SPECIAL = {f"{role}_token": f"[{role.upper()}]" for role in ("pad", "unk", "cls", "sep", "mask")}
FORMS = {"BERT": "Bert", "XLM-R": "XLMRoberta", "Gemma": "ModernBert", "bytes": "ModernBert"}
SIZES = {"hidden_size": 32, "intermediate_size": 48, "max_position_embeddings": MAX_TOKENS + 1}
SIZES |= {"num_hidden_layers": 2, "num_attention_heads": 2, "pad_token_id": 0}


class Case(NamedTuple):
    form: str
    served: FillMask
    model: Any  # of transformers
    tokenizer: Any  # of transformers


def numbered(*lists: Sequence[str]) -> dict[str, int]:
    every = dict.fromkeys(one for own in (SPECIAL.values(), *lists) for one in own)
    return {one: index for index, one in enumerate(every)}


def make_bpe(first: Sequence[str], pieces: Sequence[str], **options: Any) -> Any:
    """Return a BPE tokenizer that joins the characters of pieces from left to right."""
    merges = list(dict.fromkeys((one[:i], one[i]) for one in pieces for i in range(1, len(one))))
    vocabulary = numbered(first, [part for pair in merges for part in (*pair, "".join(pair))])
    return Tokenizer(models.BPE(vocabulary, merges, unk_token=SPECIAL["unk_token"], **options))


def make_tokenizer(form: str) -> Any:
    """Return a tokenizer of BERT's, XLM-R's or Gemma's form or of byte-level BPE."""
    text = "".join(TEXTS)
    characters = sorted({*text, *unicodedata.normalize("NFKC", text)} - {*"😀👍 "})
    pieces = [*characters, *WORDS.split()]
    if form == "BERT":
        vocabulary = numbered(pieces, [f"##{one}" for one in pieces])
        return transformers.BertTokenizerFast(vocab=vocabulary, do_lower_case=False)
    if form == "XLM-R":
        scores = dict.fromkeys(SPECIAL.values(), 0.0) | {"▁": -6.0}
        scores |= {mark + one: len(one) - 9.0 for one in pieces for mark in ("", "▁")}
        tokenizer: Any = Tokenizer(models.Unigram([*scores.items()], unk_id=1))
        tokenizer.normalizer = normalizers.NFKC()
        tokenizer.pre_tokenizer = pre.Sequence([pre.WhitespaceSplit(), pre.Metaspace()])
        tokenizer.decoder = decoders.Metaspace()
    elif form == "Gemma":
        spaced = [f"▁{one}" for one in pieces if one[0].isascii()] + WORDS.split()
        first = [*(f"<0x{byte:02X}>" for byte in range(256)), *characters]
        tokenizer = make_bpe(first, spaced, byte_fallback=True, fuse_unk=True)
        tokenizer.normalizer = normalizers.Replace(" ", "▁")
        tokenizer.pre_tokenizer = pre.Split(" ", "merged_with_previous")
        parts = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
        tokenizer.decoder = decoders.Sequence(parts)
    else:
        tokenizer = make_bpe(sorted(pre.ByteLevel.alphabet()), ["ACG", "TT", "GCA", "ing"])
        tokenizer.pre_tokenizer = pre.ByteLevel(add_prefix_space=False)
        tokenizer.decoder = decoders.ByteLevel()
    ends = [(one, tokenizer.token_to_id(one)) for one in ("[CLS]", "[SEP]")]
    tokenizer.post_processor = TemplateProcessing("[CLS] $A [SEP]", special_tokens=ends)
    return transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, **SPECIAL)


@pytest.fixture(scope="module", params=FORMS)
def case(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Case]:
    torch.set_num_threads(1)  # small tensors are slower on several threads
    scratch, family = tmp_path_factory.mktemp("words"), FORMS[request.param]
    make_tokenizer(request.param).save_pretrained(scratch / "model")
    tokenizer = transformers.AutoTokenizer.from_pretrained(scratch / "model")
    config = getattr(transformers, f"{family}Config")(vocab_size=len(tokenizer), **SIZES)
    model = getattr(transformers, f"{family}ForMaskedLM")(config)
    randomise(model, seed=7)
    model.save_pretrained(scratch / "model")
    options: Any = {"license": "", "description": "", "max_tokens": MAX_TOKENS, "precision": "fp32"}
    metadata, texts = BundleMetadata(name="words", **options), SampleTexts(TEXTS[::2], TEXTS[1::2])
    write_bundle(load_checkpoint(scratch / "model"), scratch / "bundle", metadata, texts)
    with FillMask(scratch / "bundle", threads=1) as served:
        yield Case(request.param, served, model.double().eval(), tokenizer)


def words_of(text: str, offsets: Sequence[tuple[int, int]], own: Sequence[int]) -> list[object]:
    """Return the word of each token, given the words of the pre-tokenizer.

    Words end at white space too and at characters of scripts without spaces between words. A mark,
    such as a Thai vowel, and a byte belong to a character.
    """
    words, word = [], 0
    for pair in pairwise(f" {text}"):
        unspaced = any(unicodedata.name(one, "").startswith(UNSPACED) for one in pair)
        is_mark = unicodedata.category(pair[1]).startswith("M")
        word += any(map(str.isspace, pair)) or (unspaced and not is_mark)
        words.append(word)
    words.append(word + 1)  # of a space at the end, because a space belongs to the word after it
    firsts = [words[end - len(text[start:end].lstrip())] for start, end in offsets]
    found = list(zip(own, firsts, strict=True))
    return [one if found.count(one) <= MAX_WORD else index for index, one in enumerate(found)]


@pytest.mark.parametrize("variant", ["within_word", "original"])
@torch.inference_mode()
def test_scores(case: Case, variant: Variant) -> None:
    for text, score in zip(TEXTS, case.served.score(TEXTS, variant=variant), strict=True):
        encoded = case.tokenizer(text, return_tensors="pt", return_offsets_mapping=True)
        ids, own = encoded["input_ids"][0], encoded.word_ids(0)[1:-1]
        words = words_of(text, encoded["offset_mapping"][0].tolist()[1:-1], own)
        if text in ENGLISH and case.form in {"BERT", "XLM-R"}:  # the words of minicons
            assert [words.index(one) for one in words] == [own.index(one) for one in own]
        masked = ids.repeat(len(words), 1)
        for i, word in enumerate(words):
            same = [j for j in range(i, len(words)) if words[j] == word]
            hidden = torch.tensor(same if variant == "within_word" else [i])
            masked[i, hidden + 1] = case.tokenizer.mask_token_id
        every = torch.arange(len(words))
        expected = case.model(masked).logits.log_softmax(-1)[every, every + 1, ids[1:-1]].tolist()
        assert [one.token for one in score.tokens] == ids[1:-1].tolist()
        assert [one.log_prob for one in score.tokens] == pytest.approx(expected, abs=TOLERANCE)
        assert score.log_prob == pytest.approx(sum(expected), abs=TOLERANCE)
        perplexity = math.exp(-sum(expected) / len(expected))
        assert score.pseudo_perplexity == pytest.approx(perplexity, abs=TOLERANCE, rel=TOLERANCE)


def test_a_window_has_context(case: Case) -> None:
    for part in [TEXTS[-1].split()[0]] if case.form == "bytes" else [TEXTS[2], *ENGLISH]:
        half = part * 10
        [fill] = case.served.fill(f"{half}[MASK]{half}", on_long_text="window", top_k=1)
        before, after = len(half) - fill.window[0], fill.window[1] - len(f"{half}[MASK]")
        assert CONTEXT <= min(before, after) <= max(before, after) < len(half)
