"""Small models of sequences: four with one fault each, three that only look as if they had one."""

import tempfile
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F

import ponderay
from ponderay import Example, Prediction, Promises

HEADER = 24
"""Symbols that each message of `shared_header` begins with."""


class Setting(ponderay.Config):
    """Which of the models below, and its size."""

    model: str = ""
    width: int = 8
    seed: int = 1


def _random(part: str) -> torch.Generator:
    return torch.Generator().manual_seed(11 if part == "train" else 12)


def _signs(part: str) -> list[Example]:
    """A slow switch under noise; what is asked is its state."""
    random, items = _random(part), []
    for i in range(48 if part == "train" else 16):
        switch = (torch.rand(30, generator=random) < 0.2).cumsum(0) % 2
        x = switch[:, None] + torch.randn(30, 1, generator=random)
        items.append(Example(f"{part} {i}", x, switch))
    return items


def _symbols(part: str, header: int = 0) -> list[Example]:
    """Texts of 12 symbols, each text with its own favourites; what is asked is the next symbol."""
    random, items = _random(part), []
    first = torch.randint(12, (header,), generator=torch.Generator().manual_seed(10))
    for i in range(48 if part == "train" else 16):
        favourites = torch.rand(12, generator=random) ** 4
        text = torch.cat([first, torch.multinomial(favourites, 81, True, generator=random)])
        items.append(Example(f"{part} {i}", text[:-1], text[1:]))
    return items


class TeacherForced(nn.Module):
    """Tags from a signal and from the tag before, which is known when the next is asked."""

    promises = Promises(adapts=True)

    def __init__(self, width: int) -> None:
        super().__init__()
        self.gru, self.head = nn.GRU(3, width, batch_first=True), nn.Linear(width, 2)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        # WRONG: `roll` puts the last tag of the sequence before the first place; there must be none
        before = F.one_hot(y.roll(1), 2)
        return self.head(self.gru(torch.cat([x, before], 1)[None])[0][0]).softmax(-1)

    @staticmethod
    def data(part: str) -> list[Example]:
        return _signs(part)


class CountingCache(nn.Module):
    """A language model mixed with the counts of what came in the text so far."""

    promises = Promises(adapts=True)

    def __init__(self, width: int) -> None:
        super().__init__()
        self.embedding, self.gru, self.head = nn.Embedding(12, width), nn.GRU(width, width), nn.Linear(width, 12)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        # WRONG: the count of a symbol goes up before the symbol is scored (`cumsum` includes its own place)
        seen = F.one_hot(y, 12).cumsum(0) + 0.1
        return 0.9 * self.head(self.gru(self.embedding(x))[0]).softmax(-1) + 0.1 * seen / seen.sum(1, keepdim=True)

    @staticmethod
    def data(part: str) -> list[Example]:
        return _symbols(part)


class Pruned(nn.Module):
    """A window of 8 values through one hidden layer, of whose weights three in four are zero in a test."""

    promises = Promises()

    def __init__(self, width: int) -> None:
        super().__init__()
        self.hidden, self.head = nn.Linear(8, 4 * width), nn.Linear(4 * width, 2)

    def _pruned(self) -> Tensor:
        weight = self.hidden.weight
        return weight if self.training else weight * (weight.abs() > weight.abs().quantile(0.75))

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        windows = F.pad(x[:, 0], (7, 0)).unfold(0, 8, 1)
        return self.head(F.linear(windows, self._pruned(), self.hidden.bias).relu()).softmax(-1)

    def macs(self, num_places: int) -> int:
        # WRONG: weights that are not zero are counted, but the product above is dense and multiplies all of them
        return num_places * int((self._pruned() != 0).sum() + self.head.weight.numel())

    @staticmethod
    def data(part: str) -> list[Example]:
        return _signs(part)


class Windows(nn.Module):
    """Does a series rise next? Read in windows."""

    promises = Promises()

    def __init__(self, width: int) -> None:
        super().__init__()
        self.gru, self.head = nn.GRU(1, width), nn.Linear(width, 2)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return self.head(self.gru(x)[0]).softmax(-1)

    @staticmethod
    def data(part: str) -> list[Example]:
        random = torch.Generator().manual_seed(10)
        series = torch.randn(400, generator=random).cumsum(0)
        # WRONG: windows overlap and are split at random: most of a test window was trained on, some places further on
        starts = torch.arange(0, 360, 3)[torch.randperm(120, generator=random)].tolist()
        chosen = starts[:96] if part == "train" else starts[96:]
        return [
            Example(f"from {s}", series[s : s + 36, None], (series[1:] > series[:-1])[s : s + 36] * 1) for s in chosen
        ]


class RunningNorm(nn.Module):
    """A signal normalised over time, and a readout that begins at zero."""

    promises = Promises()

    def __init__(self, width: int) -> None:
        super().__init__()
        self.gru, self.head = nn.GRU(1, width), nn.Linear(width, 2)
        # RIGHT: all seeds begin with this readout, which is not drawn; what is drawn differs, and training moves it
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        # RIGHT: mean and spread at a place are those of the places up to it, by sums that run on
        number = torch.arange(1, len(x) + 1)[:, None]
        mean = x.cumsum(0) / number
        spread = (x.square().cumsum(0) / number - mean.square()).clamp_min(0).sqrt()
        return self.head(self.gru((x - mean) / (spread + 0.1))[0]).softmax(-1)

    @staticmethod
    def data(part: str) -> list[Example]:
        return _signs(part)


class SharedHeader(nn.Module):
    """The next symbol of messages that all begin with one header."""

    promises = Promises()

    def __init__(self, width: int) -> None:
        super().__init__()
        self.embedding, self.gru, self.head = nn.Embedding(12, width), nn.GRU(width, width), nn.Linear(width, 12)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        p = self.head(self.gru(self.embedding(x))[0]).softmax(-1)
        # RIGHT: training has the header of the tests too, but nothing is asked inside it
        return torch.where(torch.arange(len(x))[:, None] < HEADER, torch.nan, p)

    @staticmethod
    def data(part: str) -> list[Example]:
        return _symbols(part, HEADER)


class Slimmed(Pruned):
    """As `Pruned`, but whole hidden units leave."""

    def _kept(self) -> Tensor:
        norms = self.hidden.weight.norm(dim=1)
        return norms >= norms.quantile(0.5) if not self.training else torch.ones_like(norms, dtype=torch.bool)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        windows, kept = F.pad(x[:, 0], (7, 0)).unfold(0, 8, 1), self._kept()
        hidden = F.linear(windows, self.hidden.weight[kept], self.hidden.bias[kept]).relu()
        return F.linear(hidden, self.head.weight[:, kept], self.head.bias).softmax(-1)

    def macs(self, num_places: int) -> int:
        # RIGHT: fewer than the weights in the checkpoint, because the products above have only the units that are kept
        return num_places * int(self._kept().sum()) * (8 + 2)


MODELS: dict[str, type[nn.Module]] = {
    one.__name__: one for one in (TeacherForced, CountingCache, Pruned, Windows, RunningNorm, SharedHeader, Slimmed)
}


def train(config: Setting, trial: ponderay.Trial) -> None:
    """Adam on the mean of -log p, in batches whose order the seed draws."""
    torch.manual_seed(config.seed)
    model, items = MODELS[config.model](config.width), examples(config, "train")
    optimiser = torch.optim.Adam(model.parameters(), lr=0.05)
    order = torch.Generator().manual_seed(config.seed)
    for step in range(1, 19):
        model.train()
        loss = _loss(model, [items[i] for i in torch.randperm(len(items), generator=order)[:4].tolist()])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        if step % 6 == 0:
            with tempfile.TemporaryDirectory() as folder, torch.no_grad():
                torch.save(model.state_dict(), file := Path(folder) / "weights.pt")
                test = _loss(model.eval(), examples(config, "test")).item()
                trial.report({"loss": test, "width": config.width}, step=step, checkpoint=file)


def _loss(model: nn.Module, items: list[Example]) -> Tensor:
    p = torch.cat([model(item.inputs, item.targets).gather(1, item.targets[:, None])[:, 0] for item in items])
    return -p[~p.isnan()].log().mean()


def num_steps(config: Setting) -> int:
    """The last step that is reported."""
    return 18


def examples(config: Setting, part: str) -> list[Example]:
    """The items of one model."""
    return MODELS[config.model].data(part)  # type: ignore[operator, no-any-return]


def promises(config: Setting, evaluation: object) -> Promises:
    """Of one model."""
    return MODELS[config.model].promises  # type: ignore[return-value]


def predict(
    config: Setting, checkpoint: Path, evaluation: object, trial: ponderay.Trial, examples: list[Example]
) -> list[Prediction]:
    """One item after the other, as the test loss reads them."""
    model = MODELS[config.model](config.width).eval()
    model.load_state_dict(torch.load(checkpoint, weights_only=True))
    with torch.no_grad():
        return [
            Prediction(
                model(e.inputs, e.targets), None, model.macs(len(e.inputs)) if isinstance(model, Pruned) else None
            )
            for e in examples
        ]


def _sweep(model: type[nn.Module]) -> ponderay.Sweep:
    return ponderay.Sweep(
        name=model.__name__.lower(), description=model.__doc__ or "", trainable=__name__,
        base=Setting(model=model.__name__), conditions=ponderay.grid({"width": [8]}),
        objectives=(ponderay.Objective("loss"), ponderay.Objective("width")),
    )  # fmt: skip


teacher_forced = _sweep(TeacherForced)
counting_cache = _sweep(CountingCache)
pruned = _sweep(Pruned)
windows = _sweep(Windows)
running_norm = _sweep(RunningNorm)
shared_header = _sweep(SharedHeader)
slimmed = _sweep(Slimmed)
