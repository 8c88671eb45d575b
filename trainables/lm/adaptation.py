"""Tests of models that adapt: two settings are chosen on validation tokens, and the test part is read with them."""

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from torch import Tensor

from trainables.errors import DivergedError
from trainables.lm import adaptation_cost, cache, cost, dynamic_evaluation
from trainables.lm.adaptation_config import Cache, DynamicEvaluation
from trainables.lm.corpus import Corpus
from trainables.lm.evaluation import Score
from trainables.lm.network import AttachedRecoder, Network

Settings = tuple[float, float]
Read = Callable[[Tensor, Sequence[Settings]], list[Score]]
"""Scores of a text, one for each pair of settings."""

Macs = Callable[[float], float]
"""Multiply-accumulates, of the share of the tokens that was recoded."""


@dataclass(frozen=True)
class AdaptedTest:
    """What came of a test.

    Attributes:
        valid, test: scores with the chosen settings, of the validation and the test part.
        added_macs_per_token: beside those of the model and its recoder.
        metrics: the settings that were chosen, and what came before the test.
    """

    valid: Score
    test: Score
    added_macs_per_token: float
    metrics: dict[str, float]


@dataclass(frozen=True)
class _Prepared:
    """What is ready to read: the names and values of its two settings, and its cost.

    Attributes:
        num_passes: that `read` makes for all settings.
        added_macs_per_token: of a read.
        statistics_macs: of all that was read to get ready.
    """

    read: Read
    num_passes: int
    names: tuple[str, str]
    settings: list[Settings]
    added_macs_per_token: Macs
    statistics_macs: float


def adapt(
    network: Network, attached: AttachedRecoder | None, config: DynamicEvaluation | Cache, text: Corpus, seed: int
) -> AdaptedTest:
    """Chooses settings on the validation part, then reads it and the test part, each from the trained model on.

    Raises:
        DivergedError: if no setting leaves a loss that is a finite number, or the chosen one a perplexity that is none.
    """
    if isinstance(config, DynamicEvaluation):
        prepared = _dynamic(network, attached, config, text, seed)
    else:
        prepared = _cache(network, attached, config, seed)
    recoder = attached.recoder if attached else None
    tuning = text.validation[: config.num_tuning_tokens]
    chosen, tried = choose(prepared.read, prepared.settings, tuning)
    settings = dict(zip(prepared.names, chosen, strict=True))
    (valid,), (test,) = (prepared.read(part, [chosen]) for part in (text.validation, text.test))
    for name, part in (("validation", valid), ("test", test)):
        if not math.isfinite(part.perplexity):
            pair = " and ".join(f"{setting} = {value:g}" for setting, value in settings.items())
            raise DivergedError(f"The perplexity of the {name} part is {part.perplexity} with {pair}; leave them out.")
    of_choice = 0.0
    for share in (score.share_recoded or 0.0 for score in tried[: prepared.num_passes]):
        macs = cost.macs_per_token(network.config, recoder, text.size, share) + prepared.added_macs_per_token(share)
        of_choice += (len(tuning) - 1) * macs
    before = {"preparation_macs": prepared.statistics_macs + of_choice}
    added = prepared.added_macs_per_token(test.share_recoded or 0.0)
    return AdaptedTest(valid, test, added, before | settings)


def choose(read: Read, settings: Sequence[Settings], tokens: Tensor) -> tuple[Settings, list[Score]]:
    """The first of the `settings` with the lowest loss on `tokens`, and all scores; without a choice none is read.

    Raises:
        DivergedError: if no loss is a finite number.
    """
    if len(settings) == 1:
        return settings[0], []
    scores = read(tokens, settings)
    finite = [(score.loss_nats, number) for number, score in enumerate(scores) if math.isfinite(score.loss_nats)]
    if not finite:
        raise DivergedError(f"No loss on the validation part is finite; lower the rates of {list(settings)}.")
    return settings[min(finite)[1]], scores


def _dynamic(
    network: Network, attached: AttachedRecoder | None, config: DynamicEvaluation, text: Corpus, seed: int
) -> _Prepared:
    adapted = dynamic_evaluation.prepare(network, attached, config, text.train, seed)
    arguments = network.config, attached.recoder if attached else None, text.size, config, adapted.num_weights

    def read(tokens: Tensor, settings: Sequence[Settings]) -> list[Score]:
        return [dynamic_evaluation.score(adapted, tokens, *pair) for pair in settings]

    return _Prepared(
        read,
        len(config.rates) * len(config.decays),
        ("dynamic_rate", "dynamic_decay"),
        list(itertools.product(config.rates, config.decays)),
        partial(adaptation_cost.dynamic_macs_per_token, *arguments),
        adaptation_cost.statistics_macs(*arguments, len(text.train) - 1, adapted.share_recoded or 0.0),
    )


def _cache(network: Network, attached: AttachedRecoder | None, config: Cache, seed: int) -> _Prepared:
    def read(tokens: Tensor, settings: Sequence[Settings]) -> list[Score]:
        return cache.scores(network, attached, config, tokens, seed, settings)

    return _Prepared(
        read,
        1,
        ("cache_theta", "cache_share"),
        list(itertools.product(config.thetas, config.shares)),
        lambda share: adaptation_cost.cache_macs_per_token(network.config, config),
        0.0,
    )
