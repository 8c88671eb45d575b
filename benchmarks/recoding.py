"""Speed of recoding language models, beside the same model without a recoder and beside recoding by autograd.

    python -m benchmarks.recoding [--repeats 3] [--hidden-size 650] [--vocabulary 10000] [--only NAME ...]

One window of T = 35 steps and B = 64 streams, 2 layers, forward and backward in training, forward in evaluation, no
dropout. "fused" is `nn.LSTM` with two layers, `nn.Embedding` and `nn.Linear`; every ratio is over it. "autograd" takes
the gradient of surprisal at every step with `torch.autograd.grad`, on a written-out `nn.LSTMCell`. "products" is the
floor of surprisal: its matrix products and nothing else, in their sizes, those of a step one step after the other. All
rows are timed in turns in one process with one torch thread, by the CPU's clock (on a GPU by the wall's); medians.
"MACs" is the ratio of multiply-accumulates alone, no bound of time: "fused" multiplies all steps at once, and a step's
64 rows read all weights for little work.
The last line says what was found on one Intel and on one AMD machine of two cores at these sizes.
"""

import argparse
import statistics
import time
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks.alike import alike
from trainables.lm import cost, noise
from trainables.lm.config import AnchoredEnsemble, Dropout, LmConfig, McDropout, Recoder, Surprisal, Variational
from trainables.lm.cuda_graph import CudaGraph
from trainables.lm.network import Network, Run
from trainables.lm.noise import Noise
from trainables.lm.step_config import LearnedStep, PredictedStep
from trainables.lm.streams import Window

NUM_STEPS, NUM_STREAMS, STEP_SIZE = 35, 64, 5.0
RECODERS: dict[str, Recoder | None] = {
    "none": None,
    "surprisal": Recoder(),
    "surprisal, eq44": Recoder(signal=Surprisal(variant="eq44")),
    "surprisal, learned": Recoder(step=LearnedStep()),
    "surprisal, predicted": Recoder(step=PredictedStep()),
    "mc_dropout, moments": Recoder(signal=McDropout(estimator="moments")),
    "mc_dropout, K=5": Recoder(signal=McDropout(num_samples=5)),
    "mc_dropout, K=10": Recoder(signal=McDropout(num_samples=10)),
    "mc_dropout, K=50": Recoder(signal=McDropout(num_samples=50)),
    "ensemble, K=5": Recoder(signal=AnchoredEnsemble(num_members=5)),
    "variational, K=5": Recoder(signal=Variational(num_samples=5)),
}
EXPECTED = (  # on a CPU at the default sizes
    "expected ratios: surprisal 1.0 to 1.6 and 1.8 to 2.7; mc_dropout, K=10 4.4 to 6.1 and 11 to 17; "
    "ensemble, K=5 5.0 to 7.3 and 8.7 to 14"
)
Step = Callable[[], None]


class Fused(nn.Module):
    """The plainest language model."""

    def __init__(self, size: int, vocabulary: int) -> None:
        super().__init__()
        self.embedding, self.lstm = nn.Embedding(vocabulary, size), nn.LSTM(size, size, 2)
        self.decoder = nn.Linear(size, vocabulary)

    def forward(self, window: Window) -> Tensor:
        """The mean loss."""
        logits = self.decoder(self.lstm(self.embedding(window.inputs))[0])
        return F.cross_entropy(logits.flatten(0, 1), window.targets.flatten())


def lstm_step(cell: nn.LSTMCell, value: Tensor, hidden: Tensor, memory: Tensor) -> tuple[Tensor, Tensor]:
    """What `cell` computes; its own kernel on a GPU gives a hidden state that has no gradient for the new memory."""
    gates = F.linear(value, cell.weight_ih, cell.bias_ih) + F.linear(hidden, cell.weight_hh, cell.bias_hh)
    entry, keep, new, out = gates.chunk(4, dim=-1)
    memory = keep.sigmoid() * memory + entry.sigmoid() * new.tanh()
    return out.sigmoid() * memory.tanh(), memory


class ByAutograd(nn.Module):
    """Surprisal recoding with a graph of every step."""

    def __init__(self, size: int, vocabulary: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, size)
        self.cells = nn.ModuleList([nn.LSTMCell(size, size) for _ in range(2)])
        self.decoder = nn.Linear(size, vocabulary)

    def forward(self, window: Window) -> Tensor:
        """The mean loss."""
        zeros = self.decoder.weight.new_zeros(NUM_STREAMS, self.decoder.in_features)
        states, losses = [(zeros, zeros) for _ in self.cells], []
        for tokens, targets in zip(window.inputs, window.targets, strict=True):
            value, parts = self.embedding(tokens), []
            with torch.enable_grad():
                for cell, (hidden, memory) in zip(self.cells, states, strict=True):
                    assert isinstance(cell, nn.LSTMCell)
                    value, memory = lstm_step(cell, value, hidden, memory)
                    parts += [value, memory]
                loss = F.cross_entropy(self.decoder(value), targets, reduction="none")
                gradients = torch.autograd.grad(loss.sum(), parts, retain_graph=True)
            losses.append(loss)
            parts = [part - STEP_SIZE * gradient for part, gradient in zip(parts, gradients, strict=True)]
            if not torch.is_grad_enabled():
                parts = [part.detach() for part in parts]
            states = list(zip(parts[::2], parts[1::2], strict=True))
        return torch.stack(losses).mean()


def ours(name: str, size: int, vocabulary: int, window: Window, is_training: bool) -> Step:
    """Reads the window as training and tests do: on a GPU as a recorded graph."""
    recoder = RECODERS[name]
    config = LmConfig(embedding_size=size, hidden_size=size, recoder=recoder, dropout=Dropout(rate=0.0))
    network = Network(config, vocabulary).to(window.inputs.device)
    state, generator = network.zeros(NUM_STREAMS, recoder), torch.Generator(window.inputs.device)

    def work(window: Window, state: Tensor, drawn: Noise) -> Run:
        run: Run = network(window, state, drawn, network.own)
        if is_training:
            run.loss.mean().backward()
        return run

    graph = CudaGraph(work, list(network.parameters()) if is_training else [])

    def step() -> None:
        shape = (NUM_STEPS, NUM_STREAMS)
        graph(window, state, noise.draw(config, recoder, shape, vocabulary, generator, is_training))

    return step


def plain(model: nn.Module, window: Window, is_training: bool) -> Step:
    """Reads the window with a model that gives its mean loss."""

    def step() -> None:
        model.zero_grad()
        loss = model(window)
        if is_training:
            loss.backward()

    return step


def products(size: int, vocabulary: int, device: torch.device, is_training: bool) -> Step:
    """What surprisal multiplies in a window, of random numbers."""
    below, hidden, gates, logits = (
        torch.rand(NUM_STEPS, NUM_STREAMS, width, device=device) for width in (size, size, 4 * size, vocabulary)
    )
    of_input, of_state, decoder = (torch.rand(width, size, device=device) for width in (4 * size, 4 * size, vocabulary))

    def forward(t: int) -> None:
        hidden[t] @ of_state.t()
        below[t] @ of_input.t()
        hidden[t] @ of_state.t()
        hidden[t] @ decoder.t()
        logits[t] @ decoder
        gates[t] @ of_input  # the recoding gradient in the layer below

    def backward(t: int) -> None:
        gates[t] @ of_state
        gates[t] @ of_input
        gates[t] @ of_state

    def step() -> None:
        below @ of_input.t()
        for t in range(NUM_STEPS):
            forward(t)
        if is_training:
            for t in range(NUM_STEPS):
                backward(t)
            gates @ of_input
            for gradient, inputs in ((logits, hidden), *((gates, rows) for rows in (below, hidden, below, hidden))):
                gradient.flatten(0, 1).t() @ inputs.flatten(0, 1)

    return step


def duration(step: Step, is_training: bool) -> float:
    """Seconds of one window, by the CPU's clock; on a GPU by the wall's."""
    clock = time.perf_counter if torch.cuda.is_available() else time.process_time
    started = clock()
    with torch.set_grad_enabled(is_training):
        step()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return clock() - started


def mac_ratios(name: str, size: int, vocabulary: int) -> tuple[float, float]:
    """Multiply-accumulates over those of "fused", in training and in evaluation; of autograd not counted."""
    name = "surprisal" if name == "products" else name
    if name not in RECODERS:
        return (1.0, 1.0) if name == "fused" else (float("nan"),) * 2
    config, plain = (LmConfig(embedding_size=size, hidden_size=size, recoder=one) for one in (RECODERS[name], None))
    training = [cost.training_macs_per_token(one, vocabulary) for one in (config, plain)]
    testing = [cost.macs_per_token(one, one.recoder, vocabulary) for one in (config, plain)]
    return training[0] / training[1], testing[0] / testing[1]


def steps_of(names: list[str], size: int, vocabulary: int, window: Window, is_training: bool) -> dict[str, Step]:
    """One reading of the window for each name."""
    steps: dict[str, Step] = {}
    for name in names:
        if name in RECODERS:
            steps[name] = ours(name, size, vocabulary, window, is_training)
        elif name == "products":
            steps[name] = products(size, vocabulary, window.inputs.device, is_training)
        else:
            model = (Fused if name == "fused" else ByAutograd)(size, vocabulary).to(window.inputs.device)
            steps[name] = plain(model, window, is_training)
    return steps


def measure(names: list[str], size: int, vocabulary: int, window: Window, repeats: int) -> dict[str, list[float]]:
    """Median seconds of a window in training and in evaluation."""
    times: dict[str, list[list[float]]] = {name: [[], []] for name in names}
    for way, is_training in enumerate((True, False)):
        steps = steps_of(names, size, vocabulary, window, is_training)
        for repeat in range(repeats + 1):
            for name, step in steps.items():
                seconds = duration(step, is_training)
                if repeat:  # the first is a warm-up
                    times[name][way].append(seconds)
    return {name: [statistics.median(parts) for parts in both] for name, both in times.items()}


@alike()
def main() -> None:
    """Prints one row for each model."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--hidden-size", type=int, default=650)
    parser.add_argument("--vocabulary", type=int, default=10_000)
    parser.add_argument("--only", nargs="*", help=f"some of: autograd, products, {', '.join(RECODERS)}")
    arguments = parser.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    size, vocabulary = arguments.hidden_size, arguments.vocabulary
    tokens = [torch.randint(vocabulary, (NUM_STEPS, NUM_STREAMS), device=device) for _ in range(2)]
    names = ["fused", *(arguments.only or ["autograd", "products", *RECODERS])]
    found = measure(names, size, vocabulary, Window(*tokens), arguments.repeats)
    print(f"{device}, torch {torch.__version__}, 2 x {size}, V = {vocabulary}, {arguments.repeats} repeats, tokens/s")
    print(f"{'model':22} {'training':>9} {'ratio':>6} {'MACs':>6} {'evaluation':>11} {'ratio':>6} {'MACs':>6}")
    for name, (training, evaluation) in found.items():
        macs = mac_ratios(name, size, vocabulary)
        speeds = [NUM_STEPS * NUM_STREAMS / seconds for seconds in (training, evaluation)]
        ratios = [training / found["fused"][0], evaluation / found["fused"][1]]
        first = f"{name:22} {speeds[0]:9.0f} {ratios[0]:6.2f} {macs[0]:6.2f}"
        print(f"{first} {speeds[1]:11.0f} {ratios[1]:6.2f} {macs[1]:6.2f}", flush=True)
    if (device.type, size, vocabulary) == ("cpu", 650, 10_000):
        print(EXPECTED)


if __name__ == "__main__":
    main()
