"""The language model as it ships, with one planted fault each, and once with a rule of adaptation that is right."""

from contextlib import contextmanager, nullcontext
from unittest import mock

from planting import leaky, replaced

import ponderay
from search_spaces.lm_sizes import SURPRISAL, base
from trainables.lm import train as family
from trainables.lm.adaptation_config import Cache, DynamicEvaluation
from trainables.lm.config import AdaptedEvaluation, LmConfig

fingerprint, metrics, num_steps, reads, selection = (
    family.fingerprint, family.metrics, family.num_steps, family.reads, family.selection,
)  # fmt: skip


class Leaky(LmConfig):
    leak: str = ""


@contextmanager
def recoded_first():
    # WRONG: in testing a token is scored by the state that the gradient of its own -log p has recoded already
    import torch
    from torch.nn import functional as F

    from trainables.lm.network import Network

    original = Network._recoded

    def recoded(self, inputs, targets, state, noise, attached, measures_after):
        run = original(self, inputs, targets, state, noise, attached, measures_after)
        if self.training or run.trace is None:
            return run
        logits = F.linear(torch.stack(run.trace.recoded_tops), self.decoder_weight[0], self.decoder_bias[0])
        nats = F.cross_entropy(logits.flatten(0, 1), targets.clamp_min(0).flatten(), reduction="none").view_as(run.nats)
        nats = torch.where(targets < 0, 0.0, nats).detach()
        return type(run)(nats, nats, run.state, run.trace, run.tops)

    with mock.patch.object(Network, "_recoded", recoded):
        yield


@contextmanager
def learns_first():
    # WRONG: dynamic evaluation moves the weights by a segment's gradient, and then scores that segment
    import torch

    from trainables.lm import dynamic_evaluation as dynamic
    from trainables.lm.evaluation import num_mine

    def runs(adapted, streams, rate, decay):
        network, attached, parameters = adapted.network, adapted.attached, adapted.parameters
        state = network.zeros(num_mine(1), attached.recoder if attached else None)
        with dynamic._learning(network, parameters), dynamic._moved_back(parameters) as trained:
            scales = [rate / (rms + adapted.config.epsilon) for rms in adapted.rms]
            pulls = [(decay * norm).clamp_max(1) for norm in dynamic._rms_norms(adapted.rms)]
            windows = dynamic.windows_with_noise(
                network.config, streams, attached, network.vocabulary_size, adapted.seed
            )
            for window, drawn in windows:
                network(window, state, drawn, attached).loss.mean().backward()
                with torch.no_grad():
                    for parts in zip(parameters, trained, pulls, dynamic.taken(parameters), scales, strict=True):
                        dynamic.move(*parts)
                    run = network(window, state, drawn, attached)
                state = run.state
                yield window, drawn, run

    with replaced(dynamic.runs, runs):
        yield


@contextmanager
def cache_off_by_one():
    # WRONG: the cache of a token has the token's own entry in it, one more than those before it
    import torch

    from trainables.lm import cache
    from trainables.lm.streams import NO_TARGET

    def in_cache(words, num_steps, size):
        entries = torch.arange(len(words), device=words.device)
        first = torch.arange(num_steps, device=words.device)[:, None]
        return (entries > first) & (entries <= first + size) & (words != NO_TARGET)

    with replaced(cache.in_cache, in_cache):
        yield


@contextmanager
def late_batch_centre():
    # WRONG: from token 16 of a window on, a tenth of the mean over all streams read together goes off the embeddings
    import torch

    from trainables.lm.network import Network

    original = Network._plain

    def plain(self, inputs, targets, state, noise):
        if not self.training:
            inputs = torch.cat([inputs[:16], inputs[16:] - 0.1 * inputs[16:].mean(1, keepdim=True)])
        return original(self, inputs, targets, state, noise)

    with mock.patch.object(Network, "_plain", plain):
        yield


@contextmanager
def test_text_in_training():
    # WRONG: an article is in the text twice: 300 of the test part's 1000 tokens stand in the training part as well
    from dataclasses import replace

    import torch

    from trainables.lm import corpus

    original = corpus.load

    def load(config):
        text = original(config)
        return replace(text, train=torch.cat([text.train[:1700], text.test[250:550], text.train[2000:]]))

    with replaced(original, load):
        yield


def planted(config):
    return globals()[config.leak]() if config.leak else nullcontext()


def train(config, trial):
    with planted(config):
        family.train(config, trial)


def evaluate(config, checkpoint, evaluation, trial):
    with planted(config):
        family.evaluate(config, checkpoint, evaluation, trial)


def examples(config, part):
    with planted(config):
        return family.examples(config, part)


def predict(config, checkpoint, evaluation, trial, examples):
    family.predict  # noqa: B018  loads what is replaced
    with planted(config):
        return family.predict(config, checkpoint, evaluation, trial, examples)


def promises(config, evaluation):
    return family.promises(config, evaluation)


def _sweep(name, leak, **values):
    small = base("laptop", "smoke")
    return ponderay.Sweep(
        name=f"planted_lm_{name}",
        description=f"{name} in the language model, planted.",
        trainable=__name__,
        base=leaky(Leaky, small, leak=leak, **values),
        conditions=ponderay.grid({"hidden_size": [24]}),
        objectives=(ponderay.Objective("perplexity"), ponderay.Objective("macs_per_token")),
    )


def _adapted(adaptation):
    return {"evaluations": (AdaptedEvaluation(adaptation=adaptation),)}


_dynamic = DynamicEvaluation(rates=(1e-3,), decays=(1e-3,))
_cache = Cache(size=100, thetas=(0.3,), shares=(0.1,))
lm_recoded_first = _sweep("recoded_first", "recoded_first", recoder=SURPRISAL)
lm_learns_first = _sweep("learns_first", "learns_first", **_adapted(_dynamic))
lm_cache_off_by_one = _sweep("cache_off_by_one", "cache_off_by_one", **_adapted(_cache))
lm_late_batch_centre = _sweep("late_batch_centre", "late_batch_centre")
lm_test_text_in_training = _sweep("test_text_in_training", "test_text_in_training")
# RIGHT: dynamic evaluation as it ships, which scores a segment before it learns from it
lm_clean_dynamic = _sweep("clean_dynamic", "", **_adapted(_dynamic))
