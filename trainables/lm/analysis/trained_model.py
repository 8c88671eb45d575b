"""What one trained model makes of sentences, minimal pairs and agreement, and how it keeps the theorems.

Each function gives one number for each of a replicate's cells, by the names in `columns`; the cells of replicates are
the same, so that they can be laid beside each other.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch

from trainables import checkpoint, distributed
from trainables.errors import InputError
from trainables.lm import corpus
from trainables.lm.analysis import agreement, probe_fitting, suites, theorems, words
from trainables.lm.analysis.garden_paths import GardenPath
from trainables.lm.config import AdaptedEvaluation, Evaluation, LmConfig, WeakSupervision
from trainables.lm.evaluation import recoder_of, test_seed
from trainables.lm.network import AttachedRecoder, Network
from trainables.lm.numbered_text import EOS, UNK
from trainables.lm.signals.probe import Supervision
from trainables.lm.streams import Streams

Cells = dict[tuple[Any, ...], float]
"""Numbers by where they belong."""

THEOREM_STREAMS: Final = 16
THEOREM_STEPS: Final = 35


@dataclass(frozen=True, eq=False)
class Trained:
    """A model with its text and the recoder of an evaluation."""

    network: Network
    text: corpus.Corpus
    attached: AttachedRecoder | None
    evaluation: Evaluation

    @property
    def seed(self) -> int:
        """The seed of masks."""
        return test_seed(self.network, self.evaluation)

    @property
    def start(self) -> int:
        """What stands before a sentence."""
        return self.text.index[EOS]

    def readings(self) -> Mapping[str, AttachedRecoder | None]:
        """Ways to read: without the recoder, and with it, if there is one."""
        return {"without": None} | ({"with": self.attached} if self.attached else {})


def load(config: LmConfig, path: Path, evaluation: Evaluation) -> Trained:
    """The model in the checkpoint at `path`.

    Raises:
        InputError: if the evaluation is of other weights than that model's, or of a model that adapts.
    """
    if evaluation.weights == "baseline":
        raise InputError(
            f"An analysis reads a condition's own weights, but the evaluation {evaluation.name} has those of the "
            "baseline; take another one with --evaluation."
        )
    if isinstance(evaluation, AdaptedEvaluation):
        raise InputError(
            f"An analysis reads sentences with a model as it was trained, but in the evaluation {evaluation.name} it "
            "adapts to a text; take another one with --evaluation."
        )
    text = corpus.load(config.data)
    network = Network(config, text.size).to(distributed.device())
    network.load_state_dict(checkpoint.load(path)["network"])
    return Trained(network, text, recoder_of(network, evaluation), evaluation)


def of_sentences(trained: Trained, sentences: Sequence[GardenPath], recode_at: int | None) -> Cells:
    """Cells by sentence, position, word and measure: bits and delta before and after recoding, and both without any.

    Without recoding delta is measured alone: of the model whose state no word changed (thesis figure 6.2).

    A word that the vocabulary lacks is named with the `<unk>` as which it is read.
    """
    numbers = [trained.text.encode(sentence.words) for sentence in sentences]
    arguments = (trained.network, numbers, trained.start)
    recoded = words.read(*arguments, trained.attached, trained.seed, recode_at)
    plain = words.read(*arguments, None, trained.seed)
    measured = words.read(*arguments, trained.attached, trained.seed, words.NOWHERE)
    cells: Cells = {}
    for i, sentence in enumerate(sentences):
        measures = {
            "bits_without": plain[i].nats_before / np.log(2),
            "bits_before": recoded[i].nats_before / np.log(2),
            "bits_after": recoded[i].nats_after / np.log(2),
            "delta_without": measured[i].delta_before,
            "delta_before": recoded[i].delta_before,
            "delta_after": recoded[i].delta_after,
        }
        for name, values in measures.items():
            for position, (word, value) in enumerate(zip(sentence.words, values, strict=True)):
                label = word if word in trained.text.index else f"{word} = {UNK}"
                cells[i + 1, position + 1, label, name] = float(value)
    return cells


def of_suites(trained: Trained, chosen: Sequence[suites.Suite]) -> Cells:
    """Cells by suite, reading and measure: the items' mean effect in bits, and the share of those with one above 0.

    Items with a word in a critical region that the vocabulary lacks are left out.

    Raises:
        InputError: if no item of a suite is left.
    """
    cells: Cells = {}
    for suite in chosen:
        is_known: dict[int, bool] = {}
        for sentence in suite.sentences:
            pairs = zip(sentence.words, sentence.regions, strict=True)
            critical = [word for word, region in pairs if region == suite.contrast.region]
            all_known = all(word in trained.text.index for word in critical)
            is_known[sentence.item] = is_known.get(sentence.item, True) and all_known
        if not any(is_known.values()):
            raise InputError(f"No item of {suite.name} has critical words that the text's vocabulary knows.")
        known = np.array(list(is_known.values()))
        numbers = [trained.text.encode(sentence.words) for sentence in suite.sentences]
        for reading, attached in trained.readings().items():
            records = words.read(trained.network, numbers, trained.start, attached, trained.seed)
            effects = suites.effects(suite, [record.nats / np.log(2) for record in records])[known]
            cells[suite.name, reading, "effect_bits"] = float(effects.mean())
            cells[suite.name, reading, "share_positive"] = float((effects > 0).mean())
            cells[suite.name, reading, "num_items"] = float(len(effects))
    return cells


def of_agreement(trained: Trained, items: Sequence[agreement.Item]) -> Cells:
    """Cells by kind of sentence, reading and measure: the share of the items whose verb is likelier in the right form.

    Items with a form that the vocabulary lacks are left out. A probe is fitted to every second item, to the hidden
    state behind its prefix and the verb's number; the others alone are counted, with their number given at every word.

    Raises:
        InputError: if no item is left.
    """
    known = [item for item in items if {item.correct, item.wrong} <= trained.text.index.keys()]
    counted = known[1::2] if _has_probe(trained.attached) else known
    if not counted:
        raise InputError(
            "Agreement needs items with both forms in the vocabulary of the text, two for a probe, but of "
            f"{len(items)} only {len(known)} are so."
        )
    prefixes = [trained.text.encode(item.prefix) for item in counted]
    forms = [trained.text.encode((item.correct, item.wrong)) for item in counted]
    kinds = np.array([item.is_generated for item in counted])
    cells: Cells = {}
    for reading, attached in trained.readings().items():
        labelled = _with_labels(trained, attached, known) if _has_probe(attached) else attached
        nats = words.compare(trained.network, prefixes, forms, trained.start, labelled, trained.seed)
        is_right = nats[:, 0] < nats[:, 1]
        for kind, chosen in (("all", kinds | True), ("generated", kinds), ("original", ~kinds)):
            if chosen.any():
                cells[kind, reading, "accuracy"] = float(is_right[chosen].mean())
                cells[kind, reading, "num_items"] = float(chosen.sum())
    return cells


def of_theorems(trained: Trained) -> Cells:
    """Cells by theorem and setting: the share of the cases in which it holds, at the beginning of the test text.

    Raises:
        InputError: without a recoder, or with a probe.
    """
    if trained.attached is None or _has_probe(trained.attached):
        raise InputError("The theorems are about a recoder; choose a condition or an `--evaluation` with one.")
    size = min(len(trained.text.test), THEOREM_STREAMS * THEOREM_STEPS + 1)
    window = Streams(trained.text.test[:size], THEOREM_STREAMS, THEOREM_STEPS).window(0).to(distributed.device())
    arguments = (trained.network, window, trained.attached, trained.seed)
    cells: Cells = {}
    for name, shares in (("1", theorems.first(*arguments)), ("2", theorems.second(*arguments))):
        cells |= {(name, setting, "share"): share for setting, share in shares.items()}
    return cells


def _has_probe(attached: AttachedRecoder | None) -> bool:
    return attached is not None and isinstance(attached.recoder.signal, WeakSupervision)


def _with_labels(
    trained: Trained, attached: AttachedRecoder | None, items: Sequence[agreement.Item]
) -> AttachedRecoder:
    """The recoder with a probe fitted to every second item, and the labels of the others."""
    assert attached is not None and isinstance(attached.recoder.signal, WeakSupervision)
    labels = torch.tensor([float(item.is_plural) for item in items], device=trained.network.decoder_weight.device)
    prefixes = [trained.text.encode(item.prefix) for item in items]
    layer = attached.recoder.signal.layer - 1
    hidden = torch.stack([_last_hidden(trained, prefix, layer) for prefix in prefixes[::2]])
    probe = probe_fitting.fit(hidden, labels[::2])
    return AttachedRecoder(attached.recoder, attached.steps, None, Supervision(probe.weight, probe.bias, labels[1::2]))


@torch.no_grad()
def _last_hidden(trained: Trained, prefix: Sequence[int], layer: int) -> torch.Tensor:
    """The hidden state of a layer behind a prefix, without a recoder."""
    tokens = torch.tensor([trained.start, *prefix], device=trained.network.decoder_weight.device)
    values = trained.network.embedding(tokens[:, None])
    for lstm in list(trained.network.layers)[: layer + 1]:
        values, _ = lstm(values)
    last: torch.Tensor = values[-1, 0]
    return last
