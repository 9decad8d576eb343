"""Checkpoints with trained weights, from the files of packages whose code never runs."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import transformers
from tokenizers import Regex, Tokenizer, models, pre_tokenizers, processors

PACKAGES = Path(__file__).parents[2] / "build" / "trained"
SMILES = r"\[[^\]]+]|Br?|Cl?|>>?|%[0-9]{2}|[NOSPFIbcnosp0-9().=#+\\/:~@?*$-]"
REACTIONS = """
CC(=O)O.CC(=O)OC(C)=O.Nc1ccc(O)cc1>>CC(=O)Nc1ccc(O)cc1
C1CCOC1.O=C([O-])[O-].O=Cc1ccc(Br)cc1.OB(O)c1ccccc1.[K+].[K+]>>O=Cc1ccc(-c2ccccc2)cc1
C1COCCN1.CS(C)=O.O=[N+]([O-])c1ccc(F)cc1>>O=[N+]([O-])c1ccc(N2CCOCC2)cc1
CC(C)(C)OC(=O)N1CCN(c2ccccc2)CC1.ClCCl.O=C(O)C(F)(F)F>>c1ccc(N2CCNCC2)cc1
C1CCOC1.COC(=O)c1ccc(Br)cc1.O.[Li+].[OH-]>>O=C(O)c1ccc(Br)cc1
Cc1ccc(S(=O)(=O)Cl)cc1.NC1CCCCC1.c1ccncc1>>Cc1ccc(S(=O)(=O)NC2CCCCC2)cc1
"""
# heavy and light chains of trastuzumab, pembrolizumab and rituximab
ANTIBODIES = """
EVQLVESGGGLVQPGGSLRLSCAASGFNIKDTYIHWVRQAPGKGLEWVARIYPTNGYTRYADSVKGRFTISADTSKNTAYLQMNSLRAEDTAVYYCSRWGGDGFYAMDYWGQGTLVTVSS
DIQMTQSPSSLSASVGDRVTITCRASQDVNTAVAWYQQKPGKAPKLLIYSASFLYSGVPSRFSGSRSGTDFTLTISSLQPEDFATYYCQQHYTTPPTFGQGTKVEIK
QVQLVQSGVEVKKPGASVKVSCKASGYTFTNYYMYWVRQAPGQGLEWMGGINPSNGGTNFNEKFKNRVTLTTDSSTTTAYMELKSLQFDDTAVYYCARRDYRFDMGFDYWGQGTTVTVSS
EIVLTQSPATLSLSPGERATLSCRASKGVSTSGYSYLHWYQQKPGQAPRLLIYLASYLESGVPARFSGSGSGTDFTLTISSLEPEDFAVYYCQHSRDLPLTFGGGTKVEIK
QVQLQQPGAELVKPGASVKMSCKASGYTFTSYNMHWVKQTPGRGLEWIGAIYPGNGDTSYNQKFKGKATLTADKSSSTAYMQLSSLTSEDSAVYYCARSTYYGGDWYFNVWGAGTTVTVSA
QIVLSQSPAILSASPGEKVTMTCRASSSVSYIHWFQQKPGSSPKPWIYATSNLASGVPVRFSGSGSGTSYSLTISRVEAEDAATYYCQQWTSNPPTFGGGTKLEIK
"""


@dataclass(frozen=True, slots=True)
class Package:
    """A package with a checkpoint.

    Attributes:
        model: name of the model's class in transformers.
        checkpoint: directory of the checkpoint.
        code: module with the pattern of SMILES tokens. None for antibodies.
    """

    model: str
    checkpoint: str
    code: str | None = None

    def write_checkpoint(self, directory: Path) -> None:
        """Copy the checkpoint and add what it lacks, as users do."""
        source = PACKAGES / self.checkpoint
        assert source.exists(), "run: make build/trained/.installed"
        shutil.copytree(source, directory)
        if self.code:
            config = directory / "config.json"
            config.write_text(json.dumps({"model_type": "bert"} | json.loads(config.read_text())))
            write_smiles_tokenizer(directory)
        else:
            shutil.copy(source.parent / "vocab.txt", directory)
            (directory / "tokenizer_config.json").write_text('{"do_lower_case": false}')

    def texts(self) -> tuple[list[str], list[str]]:
        """Return texts of the packages, for verification, and texts for calibration."""
        files = (*PACKAGES.glob("*.dist-info/METADATA"), PACKAGES / "tests" / "test_mapper.py")
        content = "\n".join(file.read_text() for file in files)
        others = REACTIONS if self.code else ANTIBODIES
        pattern = r"[^\s'\":]{30,}>>[^\s'\":]+" if self.code else r"\b[A-Z]{99,}\b"
        found = sorted({*re.findall(pattern, content)})
        space = "" if self.code else " "
        return [space.join(one) for one in found], [space.join(one) for one in others.split()]

    def tokens(self, text: str) -> list[str]:
        """Split a text as the package's own tokenizer does."""
        if not self.code:
            return text.split()
        code = (PACKAGES / self.code).read_text()
        [pattern] = re.findall(r'^SMI_REGEX_PATTERN = +r"(.+)"$', code, re.MULTILINE)
        return re.findall(pattern, text)


def write_smiles_tokenizer(directory: Path) -> None:
    """Write tokenizer.json for a vocab.txt of SMILES tokens."""
    vocab = {token: i for i, token in enumerate((directory / "vocab.txt").read_text().split())}
    smiles: Any = Tokenizer(models.WordLevel(vocab, "[UNK]"))  # its properties are untyped
    smiles.pre_tokenizer = pre_tokenizers.Split(Regex(SMILES), "removed", invert=True)
    smiles.post_processor = processors.BertProcessing(*((t, vocab[t]) for t in ("[SEP]", "[CLS]")))
    smiles.add_special_tokens(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"])
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=smiles, mask_token="[MASK]")  # noqa: S106
    fast.save_pretrained(directory)


TRAINED = {
    "antiberty": Package("BertForMaskedLM", "antiberty/trained_models/AntiBERTy_md_smooth"),
    "rxnfp": Package(
        "BertForMaskedLM", "rxnfp/models/transformers/bert_pretrained", "rxnfp/tokenization.py"
    ),
    "rxnmapper": Package(
        "AlbertForMaskedLM",
        "rxnmapper/models/transformers/albert_heads_8_uspto_all_1310k",
        "rxnmapper/smiles_utils.py",
    ),
}
