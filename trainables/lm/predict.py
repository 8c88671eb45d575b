"""What `ponderay audit` asks of a language model: stretches of text, and the distribution over words behind each token.

They come from the networks and recoders that the reported perplexity is of, and are held against its -log p.
"""

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

from trainables import checkpoint, distributed
from trainables.lm import adaptation_cost, cache, corpus, cost, dynamic_evaluation, noise
from trainables.lm.adaptation_config import Cache, DynamicEvaluation
from trainables.lm.config import AdaptedEvaluation, Evaluation, LmConfig, Recoder, Surprisal
from trainables.lm.dynamic_evaluation import Adapted
from trainables.lm.evaluation import on_baseline, recoder_of, test_seed, windows_with_noise
from trainables.lm.network import AttachedRecoder, Network, Run
from trainables.lm.noise import Noise, masked
from trainables.lm.shapes import num_copies
from trainables.lm.streams import NO_TARGET, Streams, Window
from trainables.prediction import Example, Prediction, Promises
from trainables.trial import Trial

_Part: TypeAlias = tuple[NDArray[Any], NDArray[Any]]
"""Probabilities (T B V) of a window, and gates (T B)."""


def examples(config: LmConfig, part: str) -> list[Example]:
    """Stretches of one and a half and of two and a half windows, in turn; a target is the token behind its input."""
    text = corpus.load(config.data)
    tokens, window = text.train if part == "train" else text.test, config.training.window
    made, start = list[Example](), 0
    while start + 1 < len(tokens):
        length = (3 + 2 * (len(made) % 2)) * window // 2 + 1
        inputs, targets = tokens[start : start + length][:-1], tokens[start + 1 : start + length]
        made.append(Example(f"{part} from token {start}", inputs, targets))
        start += length
    return made


def promises(config: LmConfig, evaluation: Evaluation) -> Promises:
    """A recoder by surprisal reads the token that came, and a model that adapts learns from it."""
    added, adapts = evaluation.recoder, isinstance(evaluation, AdaptedEvaluation)
    recoder = added if isinstance(added, Recoder) else config.recoder if added == "own" else None
    drawn = noise.draw(config, recoder, (1, 1), 2, torch.Generator().manual_seed(1), is_training=False)
    return Promises(
        adapts=adapts or (recoder is not None and isinstance(recoder.signal, Surprisal)),
        carries=adapts,
        same_order=True,  # all read the text from its beginning
        draws=drawn.samples is not None or bool(drawn.tensors()),
    )


def predict(
    config: LmConfig, checkpoint_path: Path, evaluation: Evaluation, trial: Trial, examples: Sequence[Example]
) -> list[Prediction]:
    """Each example is a stream of its own, as in a test; with an adaptation all are one stream, in their order."""
    if isinstance(evaluation, AdaptedEvaluation):
        is_cache = isinstance(evaluation.adaptation, Cache)
        return (_cached if is_cache else _adapted)(config, checkpoint_path, evaluation, examples)
    network, attached = _trained(config, checkpoint_path, evaluation)
    if evaluation.weights == "baseline":
        network, attached = on_baseline(network, attached, trial.prerequisite("baseline"), evaluation)
    network.eval()
    inputs, targets = (
        torch.nn.utils.rnn.pad_sequence([torch.as_tensor(getattr(e, name)) for e in examples], padding_value=filler)
        for name, filler in (("inputs", 0), ("targets", NO_TARGET))
    )
    recoder, parts = attached.recoder if attached else None, list[_Part]()
    streams, seed = Streams.beside(inputs, targets, config.training.window), test_seed(network, evaluation)
    state = network.zeros(len(examples), recoder)
    with torch.no_grad():
        for window, drawn in windows_with_noise(network.config, streams, attached, network.vocabulary_size, seed):
            run = network(window, state, drawn, attached)
            state = run.state
            parts.append(_part(network, attached, window, drawn, run))
    made = []
    for i, example in enumerate(examples):
        probabilities, gates = (np.concatenate(both)[: len(example.inputs), i] for both in zip(*parts, strict=True))
        share = float(gates.mean())
        each = cost.macs_per_token(network.config, recoder, network.vocabulary_size, share)
        made.append(Prediction(probabilities, gates, len(probabilities) * each))
    return made


def _adapted(
    config: LmConfig, checkpoint_path: Path, evaluation: AdaptedEvaluation, examples: Sequence[Example]
) -> list[Prediction]:
    """With the first of the decays and the highest of the rates, which moves most.

    A segment's weights have moved by those before it; multiply-accumulates are without the moves, which are no product.
    """
    adapted, dynamic = _prepared(config, checkpoint_path, evaluation), evaluation.adaptation
    assert isinstance(dynamic, DynamicEvaluation)
    network, attached = adapted.network, adapted.attached
    streams = _one_stream(examples, dynamic.segment)
    read = dynamic_evaluation.runs(adapted, streams, max(dynamic.rates), dynamic.decays[0])
    parts = [_part(network, attached, *one) for one in read]
    probabilities, gates = (np.concatenate(both)[:, 0] for both in zip(*parts, strict=True))
    recoder, made, start = attached.recoder if attached else None, [], 0
    for example in examples:
        own = slice(start, start + len(example.inputs))
        start, share = own.stop, float(gates[own].mean())
        arguments = network.config, recoder, network.vocabulary_size
        each = cost.macs_per_token(*arguments, share)
        each += adaptation_cost.backward_macs_per_token(*arguments, dynamic, share)
        made.append(Prediction(probabilities[own], gates[own], len(example.inputs) * each))
    return made


@torch.no_grad()
def _cached(
    config: LmConfig, checkpoint_path: Path, evaluation: AdaptedEvaluation, examples: Sequence[Example]
) -> list[Prediction]:
    """With the highest theta and share, which move most; their -log p must be that of `cache.mixed`."""
    (network, attached), settings = _trained(config, checkpoint_path, evaluation), evaluation.adaptation
    assert isinstance(settings, Cache)
    network.eval()
    recoder, width, parts = attached.recoder if attached else None, network.config.hidden_size, list[_Part]()
    state, macs = network.zeros(1, recoder), list[float]()
    keys, words = state.new_zeros(settings.size, width), torch.full((settings.size,), NO_TARGET, device=state.device)
    theta, share = state.new_tensor([max(settings.thetas)]), state.new_tensor([max(settings.shares)])
    streams, seed = _one_stream(examples, config.training.window), test_seed(network, evaluation)
    for window, drawn in windows_with_noise(network.config, streams, attached, network.vocabulary_size, seed):
        run = network(window, state, drawn, attached)
        of_model, gates = _part(network, attached, window, drawn, run)
        state, queries, targets = run.state, cache.decoded(run), window.targets[:, 0]
        keys, words = torch.cat([keys, queries]), torch.cat([words, targets])
        is_seen, products = cache.in_cache(words, len(queries), settings.size), queries @ keys.t()
        weights = (theta * products).masked_fill(~is_seen, -torch.inf).double().softmax(1).nan_to_num(0.0)
        own = torch.from_numpy(of_model[:, 0]).to(weights)
        mixture = (1 - share) * own + share * torch.zeros_like(own).index_add(1, words.clamp(min=0), weights)
        probabilities = torch.where(is_seen.any(1, keepdim=True), mixture, own)
        matches = is_seen & (words == targets[:, None])
        nats = cache.mixed(run.nats[:, 0], products, is_seen, matches, theta, share)[0]
        found = -probabilities.gather(1, targets.clamp(min=0)[:, None])[:, 0].log()
        is_asked = targets != NO_TARGET
        torch.testing.assert_close(found[is_asked].float(), nats[is_asked].float(), rtol=1e-3, atol=1e-4)
        parts.append((probabilities[:, None].cpu().numpy(), gates))
        macs += [float(width * len(keys))] * len(queries)  # of the products with what is kept and the window
        keys, words = keys[-settings.size :], words[-settings.size :]
    probabilities_of_all, gates_of_all = (np.concatenate(both)[:, 0] for both in zip(*parts, strict=True))
    made, start = [], 0
    for example in examples:
        own_places = slice(start, start + len(example.inputs))
        start, rate = own_places.stop, float(gates_of_all[own_places].mean())
        each = cost.macs_per_token(network.config, recoder, network.vocabulary_size, rate)
        total = len(example.inputs) * each + sum(macs[own_places])
        made.append(Prediction(probabilities_of_all[own_places], gates_of_all[own_places], total))
    return made


def _one_stream(examples: Sequence[Example], window: int) -> Streams:
    tokens = [torch.as_tensor(part) for e in examples for part in (e.inputs, e.targets)]
    return Streams.beside(torch.cat(tokens[::2])[:, None], torch.cat(tokens[1::2])[:, None], window)


@lru_cache(maxsize=1)
def _prepared(config: LmConfig, checkpoint_path: Path, evaluation: AdaptedEvaluation) -> Adapted:
    """Kept, since the training text is read for it."""
    assert isinstance(evaluation.adaptation, DynamicEvaluation)
    network, attached = _trained(config, checkpoint_path, evaluation)
    train = corpus.load(config.data).train
    return dynamic_evaluation.prepare(network, attached, evaluation.adaptation, train, test_seed(network, evaluation))


def _trained(config: LmConfig, checkpoint_path: Path, evaluation: Evaluation) -> tuple[Network, AttachedRecoder | None]:
    network = Network(config, corpus.load(config.data).size).to(distributed.device())
    network.load_state_dict(checkpoint.load(checkpoint_path)["network"])
    return network, recoder_of(network, evaluation)


def _part(network: Network, attached: AttachedRecoder | None, window: Window, drawn: Noise, run: Run) -> _Part:
    """The distributions of a window, whose -log p of what came must be the model's own; and which tokens are recoded.

    Decoded in numpy, for the model itself decodes what is counted as run.
    """
    copies = num_copies(attached.recoder if attached else None)
    tops = (
        run.tops if run.trace is None else torch.stack(run.trace.tops if run.trace.losses else run.trace.recoded_tops)
    )
    assert tops is not None
    rows = masked(tops, drawn.decoder).detach().cpu().numpy()
    weights, biases = (part.detach().cpu().numpy() for part in (network.decoder_weight, network.decoder_bias))
    if network.loss_of_members == "mean_logits":
        weights, biases = weights.mean(0, keepdims=True), biases.mean(0, keepdims=True)
    each = [
        torch.from_numpy(row @ weight.T + bias).double().softmax(-1)
        for row in np.split(rows, copies, 1)
        for weight, bias in zip(weights, biases, strict=True)
    ]
    probabilities = torch.stack(each).mean(0)
    is_asked, targets = (window.targets != NO_TARGET).cpu(), window.targets.cpu()
    found = -probabilities.gather(-1, targets.clamp(min=0)[..., None])[..., 0].log()
    torch.testing.assert_close(
        found[is_asked].float(), run.nats.detach().cpu()[is_asked].float(), rtol=1e-3, atol=1e-4, check_dtype=False
    )
    gates = torch.stack(run.trace.gates) if run.trace else torch.zeros(window.targets.shape)
    return probabilities.numpy(), gates.cpu().unflatten(1, (copies, -1)).float().mean(1).numpy()
