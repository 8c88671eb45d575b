"""Of what the surprisal paper's numbers are: its two data sets and its sizes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from search_spaces.claim import Place, Setting

PAPER: Final = "Lugosch, Nowrouzezahrai, Meyer 2020 (arXiv:2006.01659)"

_FREE: Final = (
    "controller.fit",
    "ar.features.window",
    "data.phones",
    "validation_decoding.kind",
    "validation_decoding.width",
)
_TRAINING: Final = {
    "ar.data.train": "('train-clean-100', 'train-clean-360', 'train-other-500')",
    "ar.encoder.kind": "gru",
    "ar.features.keep_every": "2",
    "ar.features.num_mel_bins": "80",
    "ar.hidden_size": "512",
    "ar_loss_weight": "None",
    "training.batch_size": "32",
    "training.learning_rate": "0.0003",
    "training.num_epochs": "50",
}
_VALIDATION: Final = {"validation_decoding.kind": "beam", "validation_decoding.width": "10"}
"""The checkpoint that is tested depends on it."""
_RECURRENT: Final = {
    "network.kind": "recurrent",
    "network.pre_hidden_size": "256",
    "network.big_hidden_size": "2048",
    "network.post_hidden_size": "256",
    "network.dropout": "0.5",
}
_CONVOLUTIONAL: Final = {
    "network.width": "512",
    "network.kernel_frames": "11",
    "network.big_hidden_size": "2048",
    "network.dropout": "0.5",
}


@dataclass(frozen=True)
class Corpus:
    """One of the paper's two data sets.

    Attributes:
        key: in the identities of claims, and behind `_` in the names of sweeps.
        ablation: the table of its ablation.
        laptop: sweeps that are nearest to its Table 2 on a laptop.
        note: on its error rates.
        phones: labels, any of which its error rates need besides the data, for they depend on them.
    """

    key: str
    title: str
    ablation: str
    laptop: tuple[str, ...]
    note: str
    data: Mapping[str, str]
    phones: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def setting(self, network: str = "recurrent", of_errors: bool = False) -> Setting:
        """Its data and the paper's sizes; where printed errors are held against ours, labels and validation too."""
        sizes = _RECURRENT if network == "recurrent" else {"network.kind": network} | _CONVOLUTIONAL
        requires = {**self.data, **_TRAINING, **sizes, **(_VALIDATION if of_errors else {})}
        any_of = self.phones if of_errors else {}
        return Setting(f"on {self.title} at the paper's sizes", requires, _FREE, any_of=any_of)

    def sweep(self, name: str) -> str:
        """The shipped sweep `name` on this data, where each of the two has an ending."""
        return f"asr.{name}_{self.key}"

    def bare_sweep(self, name: str) -> str:
        """The shipped sweep `name` on this data, where that on Mini-LibriSpeech has no ending."""
        return f"asr.{name}" if self.key == "mini_librispeech" else self.sweep(name)


TIMIT: Final = Corpus(
    key="timit",
    title="TIMIT",
    ablation="Table 3",
    laptop=(),
    note="",
    data={"data.kind": "timit", "data.split.kind": "standard", "data.num_train_utterances": "None"},
)
MINI_LIBRISPEECH: Final = Corpus(
    key="mini_librispeech",
    title="Mini-LibriSpeech",
    ablation="Table 4",
    laptop=("asr.laptop_librispeech",),
    note="The released code chose its checkpoints on this test set; ours are chosen on held-out speakers. "
    "The paper's labels are an aligner's, with silences; ours are the dictionary's first pronunciations, without any, "
    "unless data.phones=textgrid reads an aligner's files, or data.phones=released_csv the paper's own.",
    data={
        "data.kind": "librispeech",
        "data.train": "('train-clean-5',)",
        "data.test": "('dev-clean-2',)",
        "data.num_train_utterances": "None",
        "data.num_test_utterances": "None",
    },
    phones={"data.phones": ("dictionary_spn", "textgrid", "released_csv")},
)
CORPORA: Final = (TIMIT, MINI_LIBRISPEECH)


def of_flags(flags: str) -> tuple[str, str]:
    """Condition and evaluation of an ablation's row: `y` or `-` for AR features, surprisal in training, in testing."""
    if flags in ("small", "big"):
        return f"always_{flags}", "stochastic"
    kinds = {"y": "surprisal", "-": "random"}
    return f"{'ar' if flags[0] == 'y' else 'no_ar'},{kinds[flags[1]]}", kinds[flags[2]]


def flops(condition: str, metric: str = "paper_flops_per_frame", evaluation: str = "stochastic") -> Place:
    """A cost in the paper's unit, millions."""
    return Place(condition, metric, evaluation, scale=1e-6)
