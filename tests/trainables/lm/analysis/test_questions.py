"""The analyses of language models are there when they are asked for, and no part of the code that trains."""

import subprocess
import sys

import pytest

from orchestrator.worker.code_version import imported_sources
from trainables.lm import train


def test_the_trainable_has_them_in_the_order_of_use():
    assert list(train.analyses) == ["sentences", "suite", "agreement", "theorems"]
    assert not hasattr(train, "analysis_of_nothing")


def test_to_train_loads_none_of_them():
    loaded = "print({'trainables.analysis', 'trainables.lm.analysis.questions'} & sys.modules.keys())"
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", f"import sys, trainables.lm.training; {loaded}"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "set()\n"


def test_a_change_of_them_makes_no_other_code_version():
    sources = imported_sources("trainables.lm.train")
    inside = {name for name in sources if name.startswith("trainables.lm.analysis.")}
    assert inside == {"trainables.lm.analysis.words"}  # which the sample text of an evaluation is read with
    assert "trainables.analysis" not in sources


@pytest.mark.parametrize("options", [{}, {"step": "2"}])
def test_recoding_at_one_word_is_compared_with_no_recoding(options):
    pair = train.analyses["sentences"].pair(options)
    assert pair == (("bits_without", "bits_before") if options else ("bits_before", "bits_after"))
