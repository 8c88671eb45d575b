"""Analyses of networks with ACT, against single runs of the network, and their figures."""

import math
from itertools import pairwise

import numpy as np
import pytest
import torch

from orchestrator.report.figure import analysis as drawing
from orchestrator.worker.code_version import imported_sources
from trainables import checkpoint
from trainables.act import train
from trainables.act.analysis.questions import ANALYSES
from trainables.act.analysis.trained import results_of
from trainables.act.config import ActConfig, Adaptive, Addition, Evaluation, Fixed, Logic, Parity, PonderNet, Sort, Text
from trainables.act.network import Network
from trainables.act.tasks import data
from trainables.errors import InputError

TEST = Evaluation(num_sequences=80)
TASKS = {
    "addition": Addition(num_digits=2, num_numbers=4),
    "sort": Sort(num_items=6),
    "logic": Logic(num_gates=3, num_vectors=5),
    "parity": Parity(num_bits=5),
    "text": Text(num_steps=60, test_share=0.01),
}


def asked(name, task, tmp_path, halting=None, **options):
    """The cells, and what the network makes of the whole test set at once."""
    config = ActConfig(
        data=TASKS[task], cell="lstm", hidden_size=9, halting=halting or Adaptive(max_updates=7, halting_bias=-0.7),
        evaluations=(TEST,),
    )  # fmt: skip
    torch.manual_seed(3)
    network = Network(config).eval()
    with torch.no_grad():
        for name_of, parameter in network.named_parameters():
            if name_of != "halting.bias":
                parameter.mul_(6)  # so that steps differ
    path = checkpoint.save(tmp_path / "some.pt", {"network": network.state_dict(), "iteration": 0})
    sequences = data.test_set(config, TEST)
    with torch.no_grad():
        run = network(sequences.inputs, sequences.num_steps, sequences.has_target)
    return ANALYSES[name].ask(config, path, TEST, options), sequences, run


def test_the_trainable_has_them_late_and_they_are_no_code_that_trains():
    assert list(train.analyses) == ["counts", "difficulty", "steps", "bytes", "kinds", "sentences"]
    assert not hasattr(train, "analysis_of_nothing")
    assert not any(".analysis" in name for name in imported_sources("trainables.act.train"))


def test_an_addition_is_followed_step_by_step_beside_the_digits_that_are_summed(tmp_path):
    cells, sequences, run = asked("steps", "addition", tmp_path, lengths="4,3,4")
    of_length = {count: (sequences.num_steps == count).nonzero()[:, 0].tolist() for count in (3, 4)}
    for number, (row, length) in enumerate([(of_length[4][0], 4), (of_length[3][0], 3), (of_length[4][1], 4)], start=1):
        names = list(dict.fromkeys(name[:-1] for name in cells if name[0] == number))
        assert [name[1] for name in names] == list(range(1, length + 1))
        total = 0
        for step, name in enumerate(names):
            before = len(names[0][2]) if step == 1 else len(str(total)) if step else 0
            assert cells[*name, "digits"] == before + len(name[2])
            total += int(name[2])
            assert name[3] == ("" if step == 0 else str(total))
            assert cells[*name, "updates"] == run.num_updates[row, step]
            assert cells[*name, "ponder"] == pytest.approx(float(run.num_updates[row, step] + run.remainder[row, step]))
            assert name[4] is False


def test_a_sort_is_followed_step_by_step_and_its_last_item_marked(tmp_path):
    cells, sequences, run = asked("steps", "sort", tmp_path)
    assert list(dict.fromkeys(name[0] for name in cells)) == [1, 2, 3]
    for number, items in enumerate((2, 4, 6), start=1):
        names = list(dict.fromkeys(name[:-1] for name in cells if name[0] == number))
        row = int((sequences.num_steps == 2 * items).nonzero()[0])
        numbers = sequences.inputs[row, :items, 0].tolist()
        assert [name[2] for name in names] == [f"{x:.2f}" for x in numbers] + ["\u00b7"] * items
        assert [name[3] for name in names] == [""] * items + [str(i) for i in np.argsort(numbers)]
        assert [name[4] for name in names] == [step == items - 1 for step in range(2 * items)]
        assert [cells[*name, "updates"] for name in names] == run.num_updates[row, : 2 * items].tolist()
    assert {name[-1] for name in cells} == {"updates", "ponder"}


def test_ponder_net_draws_at_each_step_what_it_draws_in_the_test(tmp_path):
    cells, sequences, _ = asked("steps", "sort", tmp_path, halting=PonderNet(max_updates=7), lengths="6,6,6")
    (path,) = tmp_path.glob("*.pt")
    config = ActConfig(
        data=TASKS["sort"], cell="lstm", hidden_size=9, halting=PonderNet(max_updates=7), evaluations=(TEST,)
    )
    tested = results_of(config, path, sequences, TEST).num_updates
    rows = (sequences.num_steps == 12).nonzero()[:3, 0].tolist()
    shown = [value for name, value in cells.items() if name[-1] == "updates"]
    assert shown == [n for row in rows for n in tested[row, :12].tolist()] and len(set(shown)) > 1


@pytest.mark.parametrize("task", ["addition", "sort", "logic", "parity"])
def test_updates_and_error_at_each_difficulty(tmp_path, task):
    cells, sequences, run = asked("difficulty", task, tmp_path)
    levels = sorted(set(sequences.difficulty.flatten().tolist()) - {0})
    assert [name[0] for name in cells if name[1] == "updates"] == levels
    for level in levels:
        steps = sequences.difficulty == level
        assert cells[level, "updates"] == pytest.approx(float(run.num_updates[steps].float().mean()))
        assert cells[level, "ponder"] == pytest.approx(float((run.num_updates + run.remainder)[steps].mean()), rel=1e-5)
        is_right = (run.log_probs.argmax(-1) == sequences.targets[sequences.has_target]).all(-1)
        assert cells[level, "step_error"] == pytest.approx(
            1 - float(is_right[steps[sequences.has_target]].float().mean())
        )


def test_only_sequences_of_one_length_where_that_is_asked(tmp_path):
    cells, sequences, run = asked("difficulty", "logic", tmp_path, length="5")
    steps = (sequences.num_steps == 5)[:, None] & (sequences.difficulty == 2)
    assert cells[2, "updates"] == pytest.approx(float(run.num_updates[steps].float().mean()))


@pytest.mark.parametrize(("options", "last"), [({}, 7), ({"most": "3"}, 3)])
def test_numbers_of_updates_are_counted(tmp_path, options, last):
    cells, sequences, run = asked("counts", "logic", tmp_path, **options)
    steps = torch.arange(5) < sequences.num_steps[:, None]
    updates = run.num_updates[steps].clamp(max=last)
    names = [str(n) for n in range(1, last)] + [str(last) if last == 7 else f"{last}+"]
    assert [name[0] for name in cells] == names
    expected = [float((updates == n).float().mean()) for n in range(1, last + 1)]
    assert list(cells.values()) == pytest.approx(expected) and sum(expected) == pytest.approx(1.0)
    assert max(expected) < 1.0


def test_fixed_updates_are_one_number(tmp_path):
    cells, *_ = asked("counts", "parity", tmp_path, halting=Fixed(num_updates=2))
    assert cells == {("1", "share"): 0.0, ("2", "share"): 1.0}


def test_a_text_byte_by_byte_beside_surprisal_and_entropy(tmp_path):
    cells, sequences, run = asked("bytes", "text", tmp_path, first="5", count="20")
    names = list(dict.fromkeys(name[:-1] for name in cells))
    assert [name[0] for name in names] == list(range(5, 25))
    log_probs = run.log_probs.view(-1, 1, 256)[:60, 0].double()
    for name in names:
        step = name[0] - 1
        byte = int(sequences.inputs[0, step])
        assert name[1] == (chr(byte) if 32 < byte < 127 else name[1]) and name[2] == chr(byte).isspace()
        bits = -log_probs[step, sequences.targets[0, step, 0]] / math.log(2)
        assert cells[*name, "surprisal_bits"] == pytest.approx(float(bits), rel=1e-4)
        entropy = torch.distributions.Categorical(logits=log_probs[step]).entropy() / math.log(2)
        assert cells[*name, "entropy_bits"] == pytest.approx(float(entropy), rel=1e-4)
        assert cells[*name, "updates"] == run.num_updates[0, step]


def test_a_passage_of_ones_own_is_read_from_its_start(tmp_path):
    file = tmp_path / "some.xml"
    file.write_bytes(b"<id>93712</id>")
    cells, *_ = asked("bytes", "text", tmp_path, file=str(file), first="1")
    assert "".join(name[1] for name in cells if name[-1] == "updates") == "<id>93712</id"
    with pytest.raises(InputError, match="`first` must be at most 13, the bytes that are read, but got 14"):
        asked("bytes", "text", tmp_path, file=str(file), first="14")
    with pytest.raises(InputError, match="cannot be read: No such file or directory; give `--option file=PATH`"):
        asked("bytes", "text", tmp_path, file=str(tmp_path / "none"))


def test_kinds_of_bytes_beside_surprisal(tmp_path):
    cells, sequences, run = asked("kinds", "text", tmp_path)
    is_step = torch.arange(60) < sequences.num_steps[:, None]
    is_space = torch.isin(sequences.inputs, torch.tensor(list(b" \n\t\r\x0b\x0c"))) & is_step
    assert cells["space", "updates"] == pytest.approx(float(run.num_updates[is_space].float().mean()))
    assert cells["space", "share"] == pytest.approx(float(is_space.sum() / is_step.sum()))
    assert cells["all", "share"] == 1.0
    nats = -run.log_probs[:, 0].gather(-1, sequences.targets[sequences.has_target]).double().mean()
    assert cells["all", "surprisal_bits"] == pytest.approx(float(nats) / math.log(2), rel=1e-5)
    assert {name[0] for name in cells} >= {"all", "space", "punctuation", "letter", "boundary", "rare", "before_rare"}


def test_sentences_are_whole_and_their_updates_summed(tmp_path):
    cells, sequences, run = asked("sentences", "text", tmp_path, count="3")
    is_step = torch.arange(60) < sequences.num_steps[:, None]
    text = bytes(sequences.inputs[is_step].tolist())
    updates = run.num_updates[is_step].tolist()
    names = list(dict.fromkeys(name[:-1] for name in cells))
    assert [name[0] for name in names] == [1, 2, 3]
    ends = [i + 1 for i in range(len(text) - 1) if text[i : i + 1] in b".!?" and text[i + 1 : i + 2].isspace()]
    for (start, end), name in zip(pairwise(ends), names, strict=False):
        assert cells[*name, "bytes"] == end - start
        assert cells[*name, "updates"] == sum(updates[start:end])
        assert cells[*name, "updates_per_byte"] == pytest.approx(sum(updates[start:end]) / (end - start))
        assert " ".join(text[start:end].decode().split()).startswith(name[1].rstrip("\u2026"))


@pytest.mark.parametrize(
    ("name", "task", "options", "message"),
    [
        ("steps", "parity", {}, "`steps` must be of addition or sort, but this is parity; ask for `difficulty`."),
        ("steps", "text", {}, "must be of addition or sort, but this is text; ask for `bytes`."),
        ("difficulty", "text", {}, "must be of a generated task, but this is text; ask for `kinds`."),
        ("kinds", "sort", {}, "The analysis `kinds` must be of text, but this is sort; ask for `difficulty`."),
        ("sentences", "sort", {}, "The analysis `sentences` must be of text"),
        ("counts", "sort", {"most": "1"}, "The option `most` must be a whole number from 2 up, as in most=2, but"),
        ("steps", "sort", {"lengths": "2,x"}, "The option `lengths` must be a whole number from 1 up, as in lengths"),
        ("steps", "sort", {"lengths": "9"}, "`lengths` must be of test sequences, but 0 of them have 9 numbers."),
        ("difficulty", "logic", {"length": "6"}, "`length` must be of test sequences, but none of them has 6 steps."),
    ],
)  # fmt: skip
def test_a_wrong_question_is_one_sentence(tmp_path, name, task, options, message):
    with pytest.raises(InputError) as raised:
        asked(name, task, tmp_path, **options)
    assert message in str(raised.value)


FIGURES = {
    ("counts", "sort"): (["share of the steps"], "updates N of a step", [["all steps"]]),
    ("difficulty", "logic"): (
        ["updates", "step error\n(share of the steps)"],
        "difficulty (active bits, gates, digits or items)",
        [["updates N", "ponder N + R"], ["share of the steps"]],
    ),
    ("steps", "addition"): (
        ["updates", "digits"] * 2,
        "input of the step; above: its target",
        [["updates N", "ponder N + R"], ["digits of the two summands"]] * 2,
    ),
    ("steps", "sort"): (
        ["updates"] * 3,
        "input of the step; above: its target",
        [["updates N", "ponder N + R"]] * 3,
    ),
    ("bytes", "text"): (
        ["updates", "surprisal of the\nnext byte (bits)", "entropy of its\nprediction (bits)"],
        "byte that is read; spaces are shaded",
        [["updates N", "ponder N + R"], ["surprisal"], ["entropy"]],
    ),
    ("kinds", "text"): (
        ["updates", "surprisal of the\nnext byte (bits)", "entropy of its\nprediction (bits)"],
        "kind of the byte that is read; before_rare: of the byte behind it",
        [["updates N", "ponder N + R"], ["surprisal"], ["entropy"]],
    ),
    ("sentences", "text"): (
        ["updates of\nthe sentence", "updates per byte", "surprisal\n(bits per byte)"],
        "sentence of the test's text",
        [["updates N"], ["updates N"], ["surprisal"]],
    ),
}


@pytest.mark.parametrize(("name", "task"), FIGURES)
def test_a_figure_names_its_axes_with_units_and_draws_every_series(tmp_path, name, task):
    cells, *_ = asked(name, task, tmp_path)
    analysis, rows = ANALYSES[name], []
    for row in dict.fromkeys(cell[:-1] for cell in cells):
        found = {cell[-1]: value for cell, value in cells.items() if cell[:-1] == row}
        spread = {f"{measure}_std": 0.5 for measure in found}
        rows.append(dict(zip(analysis.columns, row, strict=True)) | found | spread)
    figure = drawing._panels(rows, analysis.lines)
    labels, along, series = FIGURES[name, task]
    assert [axes.get_ylabel() for axes in figure.axes] == labels
    assert [axes.get_xlabel() for axes in figure.axes][-1] == along
    assert [[line.get_label() for line in axes.containers] for axes in figure.axes] == series
    assert {axes.get_yscale() for axes in figure.axes} == {"linear"}  # no values here are logarithmic
    first = next(measure for measure in analysis.lines.measures if measure in rows[0])
    of_first = [axes for axes in figure.axes if axes.get_ylabel() == labels[0]]
    drawn = [y for axes in of_first for y in axes.containers[0].lines[0].get_ydata()]
    assert drawn[: len(rows)] == pytest.approx([row[first] for row in rows])
    ticks = [tick.get_text() for axes in of_first for tick in axes.get_xticklabels()]
    assert ticks[: len(rows)] == [str(row[analysis.lines.tick]) for row in rows]


def test_digits_are_drawn_in_a_panel_of_their_own_and_not_of_sort():
    lines = train.analyses["steps"].lines
    assert list(lines.units(["updates", "ponder"])) == ["updates"]
    assert lines.units(["updates", "ponder", "digits"]) == {"updates": ["updates", "ponder"], "digits": ["digits"]}
