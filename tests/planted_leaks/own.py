"""Small models of one's own, each with one planted fault, and three that only look as if they had one.

All read 50 numbers and say at each place which of six classes their sum up to there is of. A model overrides of
`Honest` what is wrong in it, and nothing else.
"""

import math
import tempfile
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

import ponderay

K, WIDTH = 6, 8


class Setting(ponderay.Config):
    model: str = "Honest"
    width: int = WIDTH
    seed: int = 1


def drawn(count, seed, length=50):
    x = torch.randn(count, length, 1, generator=torch.Generator().manual_seed(seed))
    return x, classes(x)


def classes(x):
    return (x.cumsum(1) / 2).floor().clamp(-3, 2).long()[..., 0] + 3


class Honest(nn.Module):
    promised = ponderay.Promises()

    def __init__(self, width):
        super().__init__()
        self.gru, self.head = nn.GRU(1, width, batch_first=True), nn.Linear(width, K)

    @staticmethod
    def data(part):
        return drawn(60 if part == "train" else 20, 1 if part == "train" else 2)

    def logits(self, x, y, lengths):
        return self.head(self.gru(x)[0])

    def probabilities(self, x, y, lengths):
        return self.logits(x, y, lengths).softmax(-1)

    def predict(self, examples):
        x = pad_sequence([torch.as_tensor(e.inputs) for e in examples], batch_first=True)
        y = pad_sequence([torch.as_tensor(e.targets) for e in examples], batch_first=True)
        lengths = [len(e.inputs) for e in examples]
        found = self.probabilities(x, y, lengths)
        return [ponderay.Prediction(p[:length]) for p, length in zip(found, lengths, strict=True)]


class ChunkNorm(Honest):
    # WRONG: from place 16 on, the mean of a chunk of 16 is taken off its inputs before all of the chunk has come
    def logits(self, x, y, lengths):
        chunks = x.split(16, 1)
        return super().logits(torch.cat([chunks[0], *(c - 0.1 * c.mean(1, keepdim=True) for c in chunks[1:])], 1), y, 0)


class TeacherForcing(Honest):
    # WRONG: the true class of the place before is read in testing too, where the model's own should be
    def __init__(self, width):
        super().__init__(width)
        self.gru = nn.GRU(1 + K, width, batch_first=True)

    def logits(self, x, y, lengths):
        before = F.one_hot(F.pad(y[:, :-1], (1, 0)), K).to(x.dtype)
        return self.head(self.gru(torch.cat([x, before], -1))[0])


class TruncatedSoftmax(Honest):
    # WRONG: classes below 2 % are cut off in testing, and what is left is not made to sum to one again
    def probabilities(self, x, y, lengths):
        p = super().probabilities(x, y, lengths)
        return p if self.training else p * (p > 0.02)


class DropoutLeftOn(Honest):
    # WRONG: eval() does nothing, so testing drops out, drawn from the process's global stream that nobody seeds
    def logits(self, x, y, lengths):
        return self.head(F.dropout(self.gru(x)[0], 0.05))


class FixedStart(Honest):
    # WRONG: the weights are drawn from seed 0 whatever the config's seed is; only the order of the data is the seed's
    def __init__(self, width):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            super().__init__(width)


class FewDuplicates(Honest):
    # WRONG: test items 7 and 13 of 20 stand in the training data, under other names
    @staticmethod
    def data(part):
        x, y = Honest.data(part)
        if part == "train":
            other_x, other_y = Honest.data("test")
            x, y = torch.cat([x, other_x[[7, 13]]]), torch.cat([y, other_y[[7, 13]]])
        return x, y


class SlidingWindows(Honest):
    # WRONG: windows of 50 at every tenth place of one recording, and every fifth window is a test item: they overlap
    @staticmethod
    def data(part):
        recording = torch.randn(1000, 1, generator=torch.Generator().manual_seed(1))
        x = recording.unfold(0, 50, 10).transpose(1, 2).contiguous()
        chosen = (torch.arange(len(x)) % 5 == 2) == (part == "test")
        return x[chosen], classes(x[chosen])


class PlannedCost(Honest):
    # WRONG: two refinements a place are planned and counted, but in testing unsure places get up to four
    planned = 2

    def __init__(self, width):
        super().__init__(width)
        self.read, self.refine = nn.Linear(5, width), nn.Linear(width, width)

    def predict(self, examples):
        found = []
        for example in examples:
            h = self.read(F.pad(torch.as_tensor(example.inputs), (0, 0, 4, 0)).unfold(0, 5, 1)[:, 0]).tanh()
            updates = torch.zeros(len(h), dtype=torch.long)
            for n in range(4):
                unsure = (self.head(h).softmax(-1).amax(-1) < 0.5) if n >= self.planned else torch.ones(len(h)) > 0
                h = torch.where(unsure[:, None], h + self.refine(h).tanh(), h)
                updates += unsure
            width = h.shape[1]
            macs = len(h) * (5 * width + self.planned * width * width + width * K)
            found.append(ponderay.Prediction(self.head(h).softmax(-1), updates, macs))
        return found

    def logits(self, x, y, lengths):
        h = self.read(F.pad(x, (0, 0, 4, 0)).unfold(1, 5, 1)[:, :, 0]).tanh()
        for _ in range(self.planned):
            h = h + self.refine(h).tanh()
        return self.head(h)


class EnsembleByTestLoss(Honest):
    # WRONG: two heads are mixed in testing by how well each does on the targets of the very batch that is tested
    def __init__(self, width):
        super().__init__(width)
        self.other = nn.Linear(width, K)

    def probabilities(self, x, y, lengths):
        h = self.gru(x)[0]
        both = torch.stack([self.head(h).softmax(-1), self.other(h).softmax(-1)])
        losses = [F.nll_loss(p.log().flatten(0, 1), y.flatten()) for p in both]
        weights = torch.full((2,), 0.5) if self.training else (-torch.stack(losses)).softmax(0)
        return (weights[:, None, None, None] * both).sum(0)


class GateSeesNext(Honest):
    # WRONG: in testing the gate of a place reads the next input; both networks are the same, so no output shows it
    def __init__(self, width):
        super().__init__(width)
        self.big = nn.Linear(width, K)
        self.big.load_state_dict(self.head.state_dict())

    def predict(self, examples):
        found = []
        for example in examples:
            x = torch.as_tensor(example.inputs)
            takes_big = F.pad(x[1:, 0], (0, 1)).abs() > 1
            h = self.gru(x[None])[0][0]
            logits = torch.where(takes_big[:, None], F.linear(h, self.head.weight, self.head.bias), self.head(h))
            found.append(ponderay.Prediction(logits.softmax(-1), takes_big))
        return found


def adapted(model, example, segment, learns_first):
    """The head's bias moves by the gradient of each segment, before or after the segment is scored."""
    h = model.gru(torch.as_tensor(example.inputs)[None])[0][0]
    base, y, shift, parts = model.head(h), torch.as_tensor(example.targets), torch.zeros(K), []
    for start in range(0, len(h), segment):
        logits, targets = base[start : start + segment], y[start : start + segment]
        moved = shift - 0.05 * ((logits + shift).softmax(-1) - F.one_hot(targets, K)).sum(0)
        parts.append((logits + (moved if learns_first else shift)).softmax(-1))
        shift = moved
    return ponderay.Prediction(torch.cat(parts))


class LearnsBeforeItScores(Honest):
    # WRONG: each segment of eight moves the bias by its own targets, and is scored with the bias that has moved
    promised = ponderay.Promises(adapts=True)

    def predict(self, examples):
        return [adapted(self, example, 8, learns_first=True) for example in examples]


class PaddingCounts(Honest):
    # WRONG: a GRU from the end reads the padding of shorter items in a batch before it reads them
    promised = ponderay.Promises(causal=False)

    def __init__(self, width):
        super().__init__(width)
        self.gru, self.head = nn.GRU(1, width, batch_first=True, bidirectional=True), nn.Linear(2 * width, K)


class StateNotReset(Honest):
    # WRONG: an item begins with a tenth of the state that the item before it in the list has left behind
    def predict(self, examples):
        found, state = [], torch.zeros(1, 1, WIDTH)
        for example in examples:
            h, state = self.gru(torch.as_tensor(example.inputs)[None], 0.1 * state)
            found.append(ponderay.Prediction(self.head(h)[0].softmax(-1)))
        return found


class CleanBatchNorm(Honest):
    # RIGHT: batch normalisation over all places, of the running statistics in testing
    def __init__(self, width):
        super().__init__(width)
        self.norm = nn.BatchNorm1d(width)

    def logits(self, x, y, lengths):
        return self.head(self.norm(self.gru(x)[0].flatten(0, 1)).view(*x.shape[:2], -1))


class CleanScoresFirst(Honest):
    # RIGHT: dynamic evaluation that scores a place before it learns from the place's target, and begins each item anew
    promised = ponderay.Promises(adapts=True)

    def predict(self, examples):
        return [adapted(self, example, 1, learns_first=False) for example in examples]


class CleanPastLossRouter(Honest):
    # RIGHT: a place takes the big network where the loss of the place before, whose target is known by then, was high
    promised = ponderay.Promises(adapts=True)

    def __init__(self, width):
        super().__init__(width)
        self.big = nn.Sequential(nn.Linear(width, 32), nn.Tanh(), nn.Linear(32, K))

    def predict(self, examples):
        found = []
        for example in examples:
            h, y = self.gru(torch.as_tensor(example.inputs)[None])[0][0], torch.as_tensor(example.targets)
            rows, routes, last = [], [], 0.0
            for row, target in zip(h, y.tolist(), strict=True):
                routes.append(last > 1.2)
                rows.append((self.big(row) if routes[-1] else self.head(row)).softmax(-1))
                last = -math.log(rows[-1][target])
            found.append(ponderay.Prediction(torch.stack(rows), routes))
        return found

    def logits(self, x, y, lengths):
        h = self.gru(x)[0]
        return (self.head(h) + self.big(h)) / 2


class CleanMasked(Honest):
    # RIGHT: a bidirectional GRU on packed sequences, so that no padding is read; it says that it is not causal
    promised = ponderay.Promises(causal=False)

    def __init__(self, width):
        super().__init__(width)
        self.gru, self.head = nn.GRU(1, width, batch_first=True, bidirectional=True), nn.Linear(2 * width, K)

    def logits(self, x, y, lengths):
        packed = pack_padded_sequence(x, torch.tensor(lengths), batch_first=True, enforce_sorted=False)
        return self.head(pad_packed_sequence(self.gru(packed)[0], batch_first=True)[0])


def train(config, trial):
    torch.manual_seed(config.seed)
    model = globals()[config.model](config.width)
    x, y = model.data("train")
    optimiser = torch.optim.Adam(model.parameters(), lr=0.03)
    for step in range(1, 61):
        batch = torch.randint(len(x), (16,))
        p = model.train().probabilities(x[batch], y[batch], [x.shape[1]] * 16)
        loss = F.nll_loss(p.clamp_min(1e-9).log().flatten(0, 1), y[batch].flatten())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        if step % 20 == 0:
            with tempfile.TemporaryDirectory() as folder:
                torch.save(model.state_dict(), file := Path(folder) / "weights.pt")
                trial.report({"loss": loss.item(), "macs": config.width}, step=step, checkpoint=file)


def examples(config, part):
    x, y = globals()[config.model].data(part)
    return [ponderay.Example(f"{part} {i}", *both) for i, both in enumerate(zip(x, y, strict=True))]


def predict(config, checkpoint, evaluation, trial, examples):
    model = globals()[config.model](config.width)
    model.load_state_dict(torch.load(checkpoint, weights_only=True))
    with torch.no_grad():
        return model.eval().predict(examples)


def promises(config, evaluation):
    return globals()[config.model].promised


def _sweep(model):
    return ponderay.Sweep(
        name=f"planted_{model.__name__.lower()}",
        description=f"{model.__name__}, planted.",
        trainable=__name__,
        base=Setting(model=model.__name__),
        conditions=ponderay.grid({"width": [WIDTH]}),
        objectives=(ponderay.Objective("loss"), ponderay.Objective("macs")),
    )


chunk_norm = _sweep(ChunkNorm)
teacher_forcing = _sweep(TeacherForcing)
truncated_softmax = _sweep(TruncatedSoftmax)
dropout_left_on = _sweep(DropoutLeftOn)
fixed_start = _sweep(FixedStart)
few_duplicates = _sweep(FewDuplicates)
sliding_windows = _sweep(SlidingWindows)
planned_cost = _sweep(PlannedCost)
ensemble_by_test_loss = _sweep(EnsembleByTestLoss)
gate_sees_next = _sweep(GateSeesNext)
learns_before_it_scores = _sweep(LearnsBeforeItScores)
padding_counts = _sweep(PaddingCounts)
state_not_reset = _sweep(StateNotReset)
clean_batch_norm = _sweep(CleanBatchNorm)
clean_scores_first = _sweep(CleanScoresFirst)
clean_past_loss_router = _sweep(CleanPastLossRouter)
clean_masked = _sweep(CleanMasked)
