"""Models of one's own, seven with a planted fault and three that only look like it; each is a config."""

import tempfile
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F

import ponderay


class Model(ponderay.Config):
    """What all of them share: thirty steps on eight random items each, and a test by what `run` predicts."""

    width: int = 8
    seed: int = 1

    def fit(self, trial):
        torch.manual_seed(self.seed)
        model, items, test = self.network(), self.data("train"), self.data("test")
        optimiser = torch.optim.Adam(model.parameters(), lr=0.02)
        for step in range(1, 31):
            order = torch.randperm(len(items)).tolist()
            self.descend(optimiser, self.loss(model, [items[i] for i in order[:8]]))
            self.report(trial, model, test, step)

    def loss(self, model, items):
        return nats([p for p, *_ in self.run(model, items)], items)

    def descend(self, optimiser, loss):
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()

    def report(self, trial, model, test, step):
        if step % 10 == 0:
            with torch.no_grad(), tempfile.TemporaryDirectory() as folder:
                found = self.run(model.eval(), test)
                loss, macs = nats([p for p, *_ in found], test).item(), sum(macs for *_, macs in found) / len(test)
                model.train()
                torch.save(model.state_dict(), file := Path(folder) / "weights.pt")
                trial.report({"loss": loss, "macs": macs}, step=step, checkpoint=file)

    def examples(self, part):
        return [ponderay.Example(f"{part} {i}", *item) for i, item in enumerate(self.data(part))]

    def predict(self, checkpoint, examples):
        model = self.network().eval()
        model.load_state_dict(torch.load(checkpoint, weights_only=True))
        with torch.no_grad():
            found = self.run(model, [tensors(e) for e in examples])
        return [ponderay.Prediction(p, decisions, float(macs)) for p, decisions, macs in found]

    def promises(self):
        return ponderay.Promises()


def tensors(example):
    targets = None if example.targets is None else torch.as_tensor(example.targets)
    return torch.as_tensor(example.inputs), targets, example.group


def nats(probabilities, items):
    each = [-p.gather(1, y[:, None]).clamp_min(1e-9).log() for p, (_, y, *_) in zip(probabilities, items, strict=True)]
    return torch.cat(each).mean()


def drawn(part, *stream):
    return torch.Generator().manual_seed(hash((1 if part == "train" else 2, *stream)) % 2**31)


def gru_macs(inputs, width, outputs):
    return 3 * width * (inputs + width) + width * outputs


def train(config, trial):
    config.fit(trial)


def examples(config, part):
    return config.examples(part)


def predict(config, checkpoint, evaluation, trial, examples):
    return config.predict(checkpoint, examples)


def promises(config, evaluation):
    return config.promises()


class Progress(Model):
    """Machines that run to their failure: is it in the last fifth? The age is given as a share of the whole record."""

    def data(self, part):
        random, items = drawn(part, 3), []
        for _ in range(30):
            length = int(torch.randint(40, 81, (), generator=random))
            worn = torch.arange(length) >= 0.8 * length
            x = torch.randn(length, 2, generator=random) + 0.4 * worn[:, None]
            items.append((x, worn.long()))
        return items

    def network(self):
        return nn.ModuleList([nn.GRU(3, self.width), nn.Linear(self.width, 2)])

    def run(self, model, items):
        found = []
        for x, *_ in items:
            age = torch.arange(len(x)) / len(x)  # features of one scale, whatever the machine
            hidden, _ = model[0](torch.cat([x, age[:, None]], 1))
            found.append((model[1](hidden).softmax(-1), None, len(x) * gru_macs(3, self.width, 2)))
        return found


class Events(Model):
    """A sensor that is read where it changes: elsewhere the state is held. The change is `torch.gradient`'s, which is
    central."""

    threshold: float = 0.4

    def data(self, part):
        random, items = drawn(part, 5), []
        for _ in range(24):
            x = torch.randn(36, generator=random).cumsum(0) * 0.5
            items.append((x[:, None], (x > x.roll(4)).long()))
        return items

    def network(self):
        return nn.ModuleList([nn.GRUCell(1, self.width), nn.Linear(self.width, 2)])

    def run(self, model, items):
        found = []
        for x, *_ in items:
            fires = self.changes(x[:, 0]).abs() > self.threshold
            state, states = torch.zeros(1, self.width), []
            for t, is_read in enumerate(fires.tolist()):
                state = model[0](x[t][None], state) if is_read or t == 0 else state
                states.append(state[0])
            num_read = int(fires.sum()) + int(not fires[0])
            macs = num_read * gru_macs(1, self.width, 0) + len(x) * 2 * self.width
            found.append((model[1](torch.stack(states)).softmax(-1), fires, macs))
        return found

    def changes(self, x):
        return torch.gradient(x)[0] if len(x) > 1 else torch.zeros_like(x)


class Pointer(Model):
    """The next of twelve signs, with a bonus for the one that came the last time that these three stood there."""

    bonus: float = 0.05

    def data(self, part):
        random, items = drawn(part, 7), []
        motif = torch.randint(12, (9,), generator=drawn("train", 8))
        for _ in range(24):
            noise = torch.randint(12, (61,), generator=random)
            for start in torch.randint(50, (3,), generator=random).tolist():
                noise[start : start + 9] = motif
            items.append((noise[:-1], noise[1:]))
        return items

    def network(self):
        parts = [nn.Embedding(12, self.width), nn.GRU(self.width, self.width), nn.Linear(self.width, 12)]
        return nn.ModuleList(parts)

    def run(self, model, items):
        found = []
        for x, *_ in items:
            hidden, _ = model[1](model[0](x))
            p = model[2](hidden).softmax(-1)
            if not torch.is_grad_enabled():
                p = p + self.bonus * self.copied(x.tolist())
            found.append((p, None, len(x) * gru_macs(self.width, self.width, 12)))
        return found

    def copied(self, signs):
        """1 for the sign that came behind the same three before; of most places no sign is."""
        came, bonus = {}, torch.zeros(len(signs), 12)
        for t in range(2, len(signs)):
            if (context := tuple(signs[t - 2 : t + 1])) in came:
                bonus[t, came[context]] = 1
            if t + 1 < len(signs):
                came[context] = signs[t + 1]
        return bonus


class Positioned(Model):
    """A decoder of one layer; batches are filled up on the left. The places are counted from the batch's first."""

    def data(self, part):
        random, items = drawn(part, 11), []
        for _ in range(24):
            x = torch.randint(6, (int(torch.randint(20, 41, (), generator=random)),), generator=random)
            items.append((x, (x.cumsum(0) + torch.arange(len(x))) % 2))
        return items

    def network(self):
        w = self.width
        return nn.ModuleList([nn.Embedding(6, w), nn.Embedding(64, w), nn.Linear(w, 3 * w), nn.Linear(w, 2)])

    def run(self, model, items):
        lengths, most = [len(x) for x, *_ in items], max(len(x) for x, *_ in items)
        x = torch.stack([F.pad(x, (most - len(x), 0)) for x, *_ in items])
        ahead = torch.tensor([most - length for length in lengths])[:, None]
        hidden = model[0](x) + model[1](self.places(torch.arange(most), ahead))
        query, key, value = model[2](hidden).chunk(3, -1)
        steps = torch.arange(most)
        is_shut = (steps[None] > steps[:, None])[None] | (steps < ahead)[:, None]
        weights = (query @ key.mT).masked_fill(is_shut, -1e9).softmax(-1)
        p, w = model[3](hidden + weights @ value).softmax(-1), self.width
        macs = [length * (3 * w * w + 2 * w) + 2 * length * length * w for length in lengths]
        return [(p[i, most - length :], None, macs[i]) for i, length in enumerate(lengths)]

    def places(self, steps, ahead):
        return steps.expand(len(ahead), -1)


class Windows(Model):
    """Up or down, from windows of one long series that overlap by three quarters, split at random."""

    def data(self, part):
        series = torch.randn(1240, generator=drawn("train", 13)).cumsum(0)
        steps = series.diff()
        starts = torch.arange(0, 1190, 10)[torch.randperm(119, generator=drawn("train", 14))]
        chosen = starts[:95] if part == "train" else starts[95:]
        return [(steps[s : s + 40, None], (steps[s + 1 : s + 41] > 0).long()) for s in chosen.tolist()]

    def network(self):
        return nn.ModuleList([nn.GRU(1, self.width), nn.Linear(self.width, 2)])

    def run(self, model, items):
        states = [model[0](x)[0] for x, *_ in items]
        macs = gru_macs(1, self.width, 2)
        return [(model[1](one).softmax(-1), None, len(one) * macs) for one in states]


class Reservoir(Model):
    """A random recurrent network, which is never trained, under a readout. It is drawn once and for all."""

    def data(self, part):
        x = torch.randn(24, 40, 1, generator=drawn(part, 17))
        return [(one, (one[:, 0].cumsum(0) > 0).long()) for one in x]

    def network(self):
        with torch.random.fork_rng():
            torch.manual_seed(0)
            reservoir = nn.RNN(1, 4 * self.width)
        return nn.ModuleList([reservoir.requires_grad_(False), nn.Linear(4 * self.width, 2)])

    def run(self, model, items):
        size, found = 4 * self.width, []
        for x, *_ in items:
            p = model[1](model[0](x)[0]).softmax(-1)
            found.append((p, None, len(x) * (size + size * size + 2 * size)))
        return found


class Epochs(Model):
    """Its epochs begin with `torch.manual_seed(0)`, so that they can be repeated: order and dropout are all seeds'."""

    def data(self, part):
        x = torch.randn(24, 40, 1, generator=drawn(part, 19))
        return [(one, (one[:, 0].cumsum(0) > 1).long()) for one in x]

    def network(self):
        return nn.ModuleList([nn.GRU(1, self.width), nn.Dropout(0.3), nn.Linear(self.width, 2)])

    def fit(self, trial):
        torch.manual_seed(self.seed)
        model, items, test = self.network(), self.data("train"), self.data("test")
        optimiser = torch.optim.Adam(model.parameters(), lr=0.02)
        for epoch in range(10):
            torch.manual_seed(epoch)
            for part, rows in enumerate(torch.randperm(len(items)).split(8)):
                self.descend(optimiser, self.loss(model, [items[i] for i in rows.tolist()]))
                self.report(trial, model, test, 3 * epoch + part + 1)

    def run(self, model, items):
        states = [model[1](model[0](x)[0]) for x, *_ in items]
        macs = gru_macs(1, self.width, 2)
        return [(model[2](one).softmax(-1), None, len(one) * macs) for one in states]


class RightlyPositioned(Positioned):
    """Right: filled up on the left too, but the places are counted from each item's own first."""

    def places(self, steps, ahead):
        return (steps - ahead).clamp_min(0)


class Taught(Model):
    """Right: a network that reads both ways teaches one that reads forward; both are in the checkpoint, and the second
    alone predicts. Items are short words of two signs, so that some of the test are also in training."""

    def data(self, part):
        x = torch.randint(2, (40, 6), generator=drawn(part, 23))
        return [(one, (one.cumsum(0) % 2).roll(-1)) for one in x]

    def network(self):
        both, own = nn.GRU(self.width, self.width, bidirectional=True), nn.GRU(self.width, self.width)
        heads = nn.Linear(2 * self.width, 2), nn.Linear(self.width, 2)
        return nn.ModuleList([nn.Embedding(2, self.width), both, own, *heads])

    def loss(self, model, items):
        embedding, both, own, teaching, head = model
        total = 0
        for x, y, *_ in items:
            read = embedding(x)
            taught = teaching(both(read)[0])
            student = head(own(read)[0]).log_softmax(-1)
            total += F.cross_entropy(taught, y) + F.kl_div(student, taught.detach().softmax(-1), reduction="batchmean")
        return total / len(items)

    def run(self, model, items):
        macs = gru_macs(self.width, self.width, 2)
        return [(model[4](model[2](model[0](x))[0]).softmax(-1), None, len(x) * macs) for x, *_ in items]

    def promises(self):
        return ponderay.Promises(generated=True)


class Prior(Model):
    """Right: mixes the network with the shares of the classes so far in this item, of which each is counted behind its
    place; it promises to adapt."""

    def data(self, part):
        random, items = drawn(part, 29), []
        for _ in range(24):
            share = torch.rand((), generator=random)
            y = (torch.rand(40, generator=random) < share).long()
            items.append((y[:, None] + 2 * torch.randn(40, 1, generator=random), y))
        return items

    def network(self):
        return nn.ModuleList([nn.GRU(1, self.width), nn.Linear(self.width, 2)])

    def run(self, model, items):
        found = []
        for x, y, *_ in items:
            p, macs = model[1](model[0](x)[0]).softmax(-1), len(x) * gru_macs(1, self.width, 2)
            if y is not None:
                seen = F.one_hot(y, 2).cumsum(0)
                before = 1 + F.pad(seen[:-1], (0, 0, 1, 0))
                p = 0.5 * p + 0.5 * before / before.sum(-1, keepdim=True)
            found.append((p, None, macs))
        return found

    def promises(self):
        return ponderay.Promises(adapts=True)


def _sweep(base, about):
    return ponderay.Sweep(
        name=type(base).__name__.lower(), description=about, trainable=__name__, base=base,
        conditions=ponderay.grid({"width": [base.width]}),
        objectives=(ponderay.Objective("loss"), ponderay.Objective("macs")),
    )  # fmt: skip


progress = _sweep(Progress(), "Failures of machines.")
events = _sweep(Events(), "A sensor that is read where it changes.")
pointer = _sweep(Pointer(), "Signs with a bonus for those that came before.")
positioned = _sweep(Positioned(), "A decoder, filled up on the left.")
windows = _sweep(Windows(), "Windows of one series.")
reservoir = _sweep(Reservoir(), "A readout of a random network.")
epochs = _sweep(Epochs(), "Epochs that can be repeated.")
rightly_positioned = _sweep(RightlyPositioned(), "A decoder, filled up on the left, with its own places.")
taught = _sweep(Taught(), "A network taught by one that reads both ways.")
prior = _sweep(Prior(), "A network and the shares of the classes so far.")
