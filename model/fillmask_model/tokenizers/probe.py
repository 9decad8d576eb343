"""Trial of a tokenizer in a process of its own, with limits.

A small tokenizer.json can make the tokenizers library panic, or multiply a text until memory or
patience ends. Only another process survives that for certain.

    python -m fillmask_model.tokenizers.probe < tokenizer.json
"""

from __future__ import annotations

import hashlib
import os
import resource
import string
import subprocess
import sys

from tokenizers import Tokenizer

MAX_BYTES, MAX_S = 900 * 10**6, 15
TEXTS = (
    "",
    string.printable,
    "The capital of France is Paris, où l'été dure. Москва — столица. 東京は日本の首都です。",
    "a" * 500 + "!",
)
_passed: set[bytes] = set()  # digests of the tokenizers that this process has tried


def check_tokenizer(where: object, content: bytes) -> None:
    """Load a tokenizer and encode texts with it, in a process with limits.

    Args:
        where: origin of the tokenizer, for the message.
        content: content of a tokenizer.json.

    Raises:
        ValueError: the tokenizer cannot be loaded or does not encode texts within the limits.
    """
    digest = hashlib.sha256(content).digest()
    if digest in _passed:  # a complete file is its own completion
        return
    trial = subprocess.run(
        [sys.executable, "-m", "fillmask_model.tokenizers.probe"],
        input=content,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env={**os.environ, "TOKENIZERS_PARALLELISM": "false", "RUST_BACKTRACE": "0"},
        check=False,
    )
    if not trial.returncode:
        _passed.add(digest)
        return
    lines = trial.stderr.decode(errors="replace").splitlines()
    reasons = [line for line in lines if line.strip() and not line.startswith("note: ")]
    reason = reasons[-1].rpartition("Exception: ")[2] if reasons else f"signal {-trial.returncode}"
    raise ValueError(
        f"{where} must be a valid tokenizer.json that encodes a short text within {MAX_S} s and "
        f"{MAX_BYTES // 10**6} MB ({reason[:200]})"
    )


def main() -> int:
    resource.setrlimit(resource.RLIMIT_AS, (MAX_BYTES, MAX_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (MAX_S, MAX_S + 1))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    tokenizer = Tokenizer.from_str(sys.stdin.buffer.read().decode())
    for text in TEXTS:
        tokenizer.encode(text)
        tokenizer.encode(text, text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
