"""Tables, figures and sections of the sources: what shows each, beside the claims that name it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

ASR: Final = "Lugosch, Nowrouzezahrai, Meyer 2020 (arXiv:2006.01659)"
ACT: Final = "Graves 2016 (arXiv:1603.08983)"
LM: Final = "Ulmer 2019, Recoding latent sentence representations (MSc thesis, University of Amsterdam)"
"""The source's name in the files of `published/`."""
OURS: Final = "Ponderay"
"""The source of what no paper says."""

DRAWING: Final = "a drawing of the model, which reports no result"
EXAMPLE: Final = "an example of the data, which reports no result"
FROM_OTHERS: Final = "taken from another paper"
NO_STREAM: Final = (
    "the section calls its input a stream and says nothing of states between utterances; in its experiments pre-net "
    "and post-net read each utterance from both ends (section 4.2), which a stream has not"
)
NAMED_ONLY: Final = "the paper names it as possible, and reports no result"


@dataclass(frozen=True)
class Item:
    """A table, figure or section of a source.

    Attributes:
        about: what it shows.
        names: how claims name it in their places, beside `place`.
        sweeps: what shows it; where there are none, those of its claims.
        command: what answers it: with `SWEEP` for each of the sweeps.
        why: why nothing here answers it; empty where something does.
    """

    paper: str
    place: str
    about: str
    names: tuple[str, ...] = ()
    sweeps: tuple[str, ...] = ()
    command: str = "ponderay report SWEEP"
    why: str = ""


ABLATIONS: Final = ("asr.ablation_timit", "asr.ablation_mini_librispeech")
ANALYSE: Final = "ponderay analyse SWEEP CONDITION"
SENTENCES: Final = f"{ANALYSE} sentences"
OTHER_DATA: Final = """ponderay run SWEEP --set 'controller.data={"kind": "librispeech", "train": "SUBSET"}'"""
SHOW: Final = "ponderay show SWEEP"
TABLE_2: Final = ("asr.table2_timit", "asr.table2_mini_librispeech")
CURVES: Final = "learning curves"
MANY_CURVES: Final = f"{CURVES} (12 conditions in one report, which --where picks)"
BATCHES: Final = f"{ANALYSE} batches"
HERE_OF_THE_TEST: Final = ", here of the test; of training the report has means since the last report"
STEPS: Final = "step sizes over training, here means since the last report"

OF_ASR: Final = (
    Item(ASR, "Figure 1", "architecture", why=DRAWING),
    Item(ASR, "section 3", "one output for each input of a stream", why=NO_STREAM),
    Item(
        ASR, "section 3.1 encoder", "causal convolutions or attention in place of the RNN", sweeps=("asr.ar_encoder",)
    ),
    Item(
        ASR,
        "section 3.1 corpus",
        "autoregressive model of the task's own audio or of a larger corpus",
        sweeps=("asr.ar_corpus", "asr.ar_corpus_timit"),
    ),
    Item(
        ASR, "section 3.1 joint training", "autoregressive model trained on, or frozen", sweeps=("asr.joint_training",)
    ),
    Item(
        ASR, "section 3.2 budget", "controller fitted to a budget of FLOPs", sweeps=("asr.budget", "asr.budget_timit")
    ),
    Item(
        ASR,
        "section 3.2 other data",
        "controller fitted to unlabelled data of another stream",
        sweeps=TABLE_2,
        command=OTHER_DATA,
    ),
    Item(ASR, "section 3.3", "decision trees, or networks with a state, as small and big", why=NAMED_ONLY),
    Item(ASR, "section 4.2", "settings", sweeps=TABLE_2, command=SHOW),
    Item(ASR, "Table 1", "parameters of each part", names=("sizes in the text",)),
    Item(ASR, "section 4.3", "surprisal against learned, and what is saved", names=("15 %",)),
    Item(ASR, "Table 2", "error and cost of four controllers"),
    Item(ASR, "section 4.4", "what each design choice brings"),
    Item(ASR, "Table 3", "ablation on TIMIT"),
    Item(ASR, "Table 4", "ablation on Mini-LibriSpeech"),
    Item(ASR, "Figure 2", "validation error over training", sweeps=ABLATIONS),
    Item(ASR, "Table 5", "another architecture, model 1", names=("Appendix A, Model 1",)),
    Item(ASR, "Table 6", "model 2: model 1 with dropout", names=("Appendix A, Model 2",)),
    Item(ASR, "Table 7", "model 3: no pre-net", names=("Appendix A, Model 3",)),
    Item(
        ASR,
        "Figure 3",
        "error while the controller's bias is raised",
        names=("Appendix B",),
        sweeps=("asr.controller_bias",),
    ),
    Item(ASR, "Table 8", "deterministic execution on Mini-LibriSpeech", names=("Appendix C, Mini",)),
    Item(ASR, "Table 9", "deterministic execution on TIMIT", names=("Appendix C, TIMIT",)),
    Item(
        ASR,
        "Figure 4",
        "error of the learned controller over lambda",
        sweeps=("asr.lambda_grid", "asr.lambda_grid_timit"),
    ),
    Item(ASR, "section 5", "effort weighted by reward, or shared by several tasks", why=NAMED_ONLY),
)
OF_TASKS: Final = (
    ("parity", 3, 6, ""),
    ("logic", 7, 10, " --option length=5"),
    ("addition", 11, 14, " --option length=3"),
    ("sort", 16, 19, ""),
)
"""Graves' tasks: the figure of an example, that of its difficulty, and the option that shows what that one shows."""


def _of_graves() -> Iterator[Item]:
    """Figures 1 to 24, as their captions have it, and table 1; those of the text are not drawn over a difficulty."""
    yield Item(ACT, "Figure 1", "computation graph of a recurrent network, over two steps", why=DRAWING)
    yield Item(ACT, "Figure 2", "the same with ACT: several updates a step", why=DRAWING)
    all_tasks = tuple(f"act.tau_{task}" for task in (*(task for task, *_ in OF_TASKS), "text"))
    yield Item(ACT, "section 3", "settings", sweeps=all_tasks, command=SHOW)
    for task, example, by_difficulty, option in OF_TASKS:
        sweeps = f"act.tau_{task}", f"act.tau_{task}_short"
        yield Item(ACT, f"Figure {example}", f"an example of {task}: an input and its target", why=EXAMPLE)
        if task == "logic":
            yield Item(ACT, "Table 1", "truth tables of the gates of logic", why="it defines the task's data")
        yield from _of_runs(task, example + 1)
        about, command = f"{task}: ponder and error over difficulty", f"{ANALYSE} difficulty{option}"
        yield Item(ACT, f"Figure {by_difficulty}", about, sweeps=sweeps, command=command)
        if task in ("addition", "sort"):
            about = f"{task}: ponder at each step of three sequences"
            yield Item(ACT, f"Figure {by_difficulty + 1}", about, sweeps=sweeps, command=f"{ANALYSE} steps")
    yield from _of_runs("text", 21)
    text = "act.tau_text", "act.tau_text_short"
    yield Item(ACT, "Figure 23", "text: ponder, loss and entropy by byte", sweeps=text, command=f"{ANALYSE} bytes")
    passage = f"{ANALYSE} bytes --option file=PATH"
    yield Item(ACT, "Figure 24", "text: the same where it has XML tags", sweeps=text, command=passage)
    adapted = tuple(f"act.fixed_updates_{task}" for task, *_ in OF_TASKS)
    yield Item(ACT, "section 4", "a time penalty that is found by itself, here by a budget of updates", sweeps=adapted)


def _of_runs(task: str, first: int) -> Iterator[Item]:
    """Two figures: errors at the end over the time penalty, then over training (left) and over ponder (right)."""
    yield Item(ACT, f"Figure {first}", f"{task}: error by time penalty, and without ACT")
    about, sweeps = f"{task}: {MANY_CURVES}, and error over ponder", (f"act.tau_{task}", f"act.tau_{task}_short")
    yield Item(ACT, f"Figure {first + 1}", about, sweeps=sweeps)


OF_ACT: Final = (
    *_of_graves(),
    Item(
        OURS,
        "parity, logic, addition and sort",
        "whether ACT helps at a laptop's sizes",
        names=("parity", "logic", "addition", "sort"),
    ),
)
OF_DELTA: Final = ("lm.error_signal", "lm.step_size")
OF_LM: Final = (
    Item(LM, "Figure 3.1", "loss surfaces", why=FROM_OTHERS),
    Item(LM, "Figure 3.2", "dropout masks of recurrent networks", why=FROM_OTHERS),
    Item(LM, "Figure 3.3", "sampling of an anchored ensemble", why=FROM_OTHERS),
    Item(LM, "Figure 4.1", "recoding", why=DRAWING),
    Item(LM, "Figure 4.2", "error signals", why=DRAWING),
    Item(LM, "Figure 5.1", f"{MANY_CURVES}, by step size", sweeps=("lm.step_size",)),
    Item(LM, "Table 5.1", "perplexity by step size", names=("section 5.3.1",)),
    Item(LM, "Figure 5.2", f"{CURVES}, by number of samples", sweeps=("lm.samples",)),
    Item(LM, "Table 5.2", "perplexity and speed by number of samples", names=("section 5.3.2",)),
    Item(
        LM,
        "Figure 5.3",
        f"error signal at each batch by number of samples{HERE_OF_THE_TEST}",
        sweeps=("lm.samples",),
        command=BATCHES,
    ),
    Item(LM, "Figure 5.4", "perplexity and error signal by dropout rate"),
    Item(
        LM,
        "Figure 5.4 b",
        f"error signal at each batch by dropout rate{HERE_OF_THE_TEST}",
        sweeps=("lm.mc_dropout_rate",),
        command=BATCHES,
    ),
    Item(LM, "Figure 5.5", "learned and predicted step sizes", names=("Figures 5.5",)),
    Item(LM, "Figure 5.5 b to d", STEPS, sweeps=("lm.dynamic_step",)),
    Item(LM, "Figure 5.6", "recoders taken away and added", names=("Figures 5.5 and 5.6",)),
    Item(LM, "Figure 6.1", "surprisal on garden path sentences", sweeps=("lm.step_size",), command=SENTENCES),
    Item(LM, "Figure 6.2", "error signal before and after recoding", sweeps=OF_DELTA, command=SENTENCES),
    Item(LM, "section 6.1.2", "whether recoding ever raises the error signal"),
    Item(LM, "Figure 6.3", "what recoding uncertainty does to surprisal", sweeps=OF_DELTA, command=SENTENCES),
    Item(LM, "section 7.1", "whether one constant step suits all layers", sweeps=("lm.layers",)),
    Item(
        LM,
        "section 8.1.1",
        "how the error signal goes with the loss",
        sweeps=OF_DELTA,
        command=f"{ANALYSE} delta",
    ),
    Item(LM, "Figure B.1", "pseudocode with surprisal", why=DRAWING),
    Item(LM, "Figure B.2", "pseudocode with MC dropout", why=DRAWING),
    Item(LM, "Figure B.3", "pseudocode with an anchored ensemble", why=DRAWING),
    Item(LM, "Table B.1", "settings", sweeps=("lm.step_size",), command="ponderay show SWEEP"),
    Item(
        LM,
        "Table B.2",
        "searched settings, and the best",
        sweeps=("lm.search", "lm.search_mc_dropout", "lm.search_ensemble", "lm.search_variational"),
    ),
    Item(LM, "Figure B.4", f"{CURVES}, by dropout rate", sweeps=("lm.mc_dropout_rate",)),
    Item(LM, "Figure B.5", STEPS, sweeps=("lm.dynamic_step",)),
    Item(LM, "Figure B.6", "error signal on more sentences", sweeps=OF_DELTA, command=SENTENCES),
)
OF_THESIS_TEXT: Final = (
    Item(LM, "section 5.3.1 variational", "variational RNNs, far worse in first tests", sweeps=("lm.signals",)),
    Item(
        LM,
        "section 7.2",
        "what recoding by a label, known beforehand, does",
        sweeps=("lm.weak_supervision",),
        command=f"{ANALYSE} agreement",
    ),
    Item(LM, "section 8.1.2", "a step size from the Lipschitz constant", sweeps=("lm.dynamic_step",)),
    Item(
        LM, "section 8.1.3", "recoding gradients by finite differences", why="the thesis leaves it to others, untested"
    ),
    Item(LM, "section 8.1.4", "recoding added after training", sweeps=("lm.ablation",)),
    Item(
        LM,
        "appendix A.4",
        "recoding lowers the error signal (theorem 1)",
        sweeps=("lm.step_size",),
        command=f"{ANALYSE} theorems",
    ),
)
ITEMS: Final = (*OF_ASR, *OF_ACT, *OF_LM, *OF_THESIS_TEXT)
