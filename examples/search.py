"""Search with sparse vectors, as docs/sparse.md shows it.

    make search
    .venv-dev/bin/python examples/search.py --pairs 64 --epochs 1    # a quick look

The script trains the built-in encoder on headlines and paragraphs of Wikinews, exports it, and
searches the paragraphs of other articles by their headlines. BM25 searches them too. A paragraph to
find is the second of its article, because the first repeats the words of the headline. The script
prints a table.

Shapes: Q queries, D documents, V vocabulary.
"""

from __future__ import annotations

import argparse
import lzma
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import bm25s
import numpy as np
import Stemmer
from numpy.typing import NDArray
from scipy.sparse import csr_array

from fillmask import FillMask
from fillmask.bundles.bundle import default_bundle_path, read_bundle
from fillmask_export.commands import main as fillmask_export
from fillmask_export.heads.sparse import STRONGEST, strongest
from fillmask_export.restore import main as restore
from fillmask_model.commands import main as fillmask_train
from fillmask_model.fine_tuning.search import mrr_and_recall
from fillmask_model.interruption import StopRequest

DATA = Path(__file__).parent / "data" / "news"
HEADLINE, SHOWN = "Man convicted of murdering wife 28 years ago", 12  # whose words to print
TEXTS_AT_ONCE = 100
COMPARED = 1000  # pairs whose vectors in int8 are compared with fp32

Pairs = list[list[str]]  # headline, paragraph


def main() -> None:
    """Run all steps."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--directory", type=Path, default=Path("runs/search"))
    parser.add_argument("--epochs", type=int, default=3, help="passes over the training pairs")
    parser.add_argument("--pairs", type=int, help="pairs of each file (default: all)")
    options = parser.parse_args()
    directory: Path = options.directory
    directory.mkdir(parents=True, exist_ok=True)
    files = {name: read(name)[: options.pairs] for name in ("train", "validation", "test")}
    with StopRequest() as stop:
        restore([str(default_bundle_path()), str(directory / "start")])
        train(directory, files, options.epochs, stop)
        untrained = export(directory / "start", "untrained", "int8", stop)
        fp32, int8 = (export(directory / "model", "news", one, stop) for one in ("fp32", "int8"))
    pairs = files["test"]
    exact, rounded, words = encode(fp32, pairs), encode(int8, pairs), bm25(pairs)
    print("| search | MRR@10 | recall@10 | words per headline | words per paragraph |")
    print("| --- | --: | --: | --: | --: |")
    print_row("BM25, with stop words and stems", words)
    for name, vectors in (
        ("sparse, built-in model without training", encode(untrained, pairs)),
        ("sparse, trained, fp32", exact),
        ("sparse, trained, int8", rounded),
    ):
        per_text = [f"{one.nnz / len(pairs):.0f}" for one in (vectors.queries, vectors.documents)]
        print_row(name, vectors.scores(), *per_text)
    parts = (one / one.max(axis=1, keepdims=True) for one in (rounded.scores(), words))
    print_row("sparse int8 and BM25, their scores added", sum(parts))
    print_agreement(exact, rounded)
    with FillMask(int8) as model:
        vector = model.embed_sparse(HEADLINE, input_type="query", top_n=SHOWN)
    best = [vector.tokens[place] for place in np.argsort(-vector.values)]
    print(f"The strongest words of “{HEADLINE}”: {', '.join(best)}.")


def read(name: str) -> Pairs:
    with lzma.open(DATA / f"{name}.tsv.xz", "rt", encoding="utf-8") as stream:
        return [line.rstrip("\n").split("\t") for line in stream][1:]


def run(command: Callable[[list[str]], int], *arguments: object, stop: StopRequest) -> None:
    """Run a step as its command line would."""
    if command([str(argument) for argument in arguments]):
        raise SystemExit(f"the step {arguments[0]} has failed; read its message above")
    if stop():
        raise SystemExit("SIGTERM has stopped the example")


def train(directory: Path, files: dict[str, Pairs], epochs: int, stop: StopRequest) -> None:
    for name in ("train", "validation"):
        lines = ("\t".join(pair) + "\n" for pair in [["query", "document"], *files[name]])
        (directory / f"{name}.tsv").write_text("".join(lines), encoding="utf-8")
    run(
        fillmask_train,
        *("sparse", directory / "train.tsv", "--validation", directory / "validation.tsv"),
        *("--init", directory / "start", "--output", directory / "model", "--epochs", epochs),
        *("--quoting", "none"),
        stop=stop,
    )


def export(checkpoint: Path, name: str, precision: str, stop: StopRequest) -> Path:
    """Export a checkpoint with the task sparse and return the directory of the bundle."""
    output = checkpoint.with_name(f"{name}-{precision}")
    shutil.rmtree(output, ignore_errors=True)
    run(
        fillmask_export,
        *(checkpoint, "--output", output, "--precision", precision, "--name", name),
        *("--task", "sparse"),
        stop=stop,
    )
    return output


@dataclass(frozen=True, slots=True, eq=False)
class Vectors:
    """Sparse vectors of queries (Q, V) and documents (D, V)."""

    queries: Any
    documents: Any

    def scores(self) -> NDArray[np.float32]:
        """Return the products (Q, D) of the vectors."""
        scores_QD: NDArray[np.float32] = (self.queries @ self.documents.T).toarray()
        return scores_QD


def encode(bundle: Path, pairs: Pairs) -> Vectors:
    vocab_size = read_bundle(bundle).architecture.vocab_size

    def matrix(texts: Sequence[str], input_type: Any) -> Any:
        vectors = [
            vector
            for start in range(0, len(texts), TEXTS_AT_ONCE)
            for vector in model.embed_sparse(
                texts[start : start + TEXTS_AT_ONCE], input_type=input_type
            )
        ]
        ends = np.cumsum([0, *(len(one.indices) for one in vectors)])
        parts = [
            np.concatenate([getattr(v, name) for v in vectors]) for name in ("values", "indices")
        ]
        return csr_array((*parts, ends), shape=(len(texts), vocab_size))

    with FillMask(bundle) as model:
        queries, documents = zip(*pairs, strict=True)
        return Vectors(matrix(queries, "query"), matrix(documents, "document"))


def bm25(pairs: Pairs) -> NDArray[np.float32]:
    """Return scores (Q, D) of BM25 (Robertson & Zaragoza 2009), with stop words and stems."""
    options: dict[str, Any] = {
        "stopwords": "en",
        "stemmer": Stemmer.Stemmer("english"),
        "show_progress": False,
    }
    index = bm25s.BM25()
    queries, documents = (list(side) for side in zip(*pairs, strict=True))
    index.index(bm25s.tokenize(documents, **options), show_progress=False)
    tokens = bm25s.tokenize(queries, return_ids=False, **options)
    return np.stack([index.get_scores(words) for words in tokens])


def print_row(name: str, scores_QD: NDArray[np.float32], *words: str) -> None:
    """Print how well a search finds the own document of each query, the last of equal scores."""
    ranks_Q = (scores_QD >= scores_QD.diagonal()[:, None]).sum(axis=1)
    figures = [f"{one:.3f}" for one in mrr_and_recall(ranks_Q)]
    print("|", " | ".join([name, *figures, *(words or ("", ""))]), "|")


def print_agreement(exact: Vectors, rounded: Vectors) -> None:
    """Print how close the vectors of int8 are to those of fp32."""
    overlaps = []
    for row in range(min(COMPARED, exact.documents.shape[0])):
        best = [strongest(one.documents[[row]].toarray()[0]) for one in (exact, rounded)]
        overlaps.append(len(np.intersect1d(best[0], best[1])) / len(best[0]))
    products, expected = (
        one.queries[:COMPARED].multiply(one.documents[:COMPARED]).sum(axis=1)
        for one in (rounded, exact)
    )
    some = expected > 0
    difference = (np.abs(products - expected)[some] / expected[some]).mean()
    print(
        f"\nint8 has {100 * np.mean(overlaps):.1f} % of fp32's {STRONGEST} strongest words of a "
        f"paragraph, and the product of a headline with its paragraph differs by "
        f"{100 * difference:.1f} % on average ({len(overlaps):,} pairs).\n"
    )


if __name__ == "__main__":
    main()
