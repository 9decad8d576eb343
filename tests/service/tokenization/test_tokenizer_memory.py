"""Memory that the word caches of tokenizers take."""

import subprocess
import sys

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers

LETTERS = "abcdefghijklmnop"

# prints the growth of the process in bytes, over texts in which no word occurs twice
FEED = """
import random, sys
from fillmask.tokenization.tokenizer_file import load_tokenizer

def resident_bytes():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096

tokenizer = load_tokenizer(sys.stdin.buffer.read(), "<mask>", 16).tokenizer
draw = random.Random(1)
before = resident_bytes()
for _ in range(120):
    words = ("".join(draw.choices("abcdefghijklmnop", k=250)) for _ in range(100))
    tokenizer.encode(" ".join(words))
print(resident_bytes() - before)
"""


@pytest.mark.processes
@pytest.mark.skipif(sys.platform != "linux", reason="memory is read in /proc")
def test_the_cache_of_byte_pair_encoding_is_limited() -> None:
    # The library's default cache keeps 10,000 words of any length, up to 100 MB.
    vocabulary = {letter: i for i, letter in enumerate(LETTERS)} | {"<mask>": 16}
    tokenizer = Tokenizer(models.BPE(vocabulary, []))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.add_special_tokens(["<mask>"])
    done = subprocess.run(
        [sys.executable, "-c", FEED],
        input=tokenizer.to_str().encode(),
        capture_output=True,
        check=True,
    )
    assert int(done.stdout) < 25 * 2**20
