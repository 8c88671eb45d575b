"""Ponderay from a notebook: run a sweep, and ask for its front; `Study.load` reads the rest.

Example:
    >>> from orchestrator import notebook  # doctest: +SKIP
    >>> study = notebook.run("asr.demo", smoke=True)  # doctest: +SKIP
    >>> study.to_dataframe().groupby("condition")["per@stochastic"].describe()  # doctest: +SKIP
    >>> [point.name for point in notebook.pareto(study) if point.is_front]  # doctest: +SKIP
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from orchestrator.study import Study
from trainables.errors import InputError

if TYPE_CHECKING:
    from orchestrator.pareto.front import Point
    from search_spaces.sweep import Objective, Sweep


def run(sweep: "Sweep | str", cpus: int | None = None, accept_code: bool = False, smoke: bool = False) -> Study:
    """The study of `sweep`, a sweep or the name of a shipped one, once what was left of it has run on Ray.

    It is `ponderay run`: what is done stays done, what was cut off goes on.

    Args:
        cpus: of a cluster made on this machine; default: all.
        accept_code: go on beside results of another version of the trainable's code.
        smoke: the small size of a shipped sweep.

    Raises:
        InputError: if the sweep, its data or its settings are wrong.
        RefusedError: if it must not start as it is.

    Example:
        >>> from dataclasses import replace  # doctest: +SKIP
        >>> study = run(replace(find_sweep("asr.demo", smoke=True), seeds=(1, 2)), cpus=2)  # doctest: +SKIP
    """
    from orchestrator.launch import launch
    from orchestrator.printing import out
    from orchestrator.settings import read_settings

    settings, found = read_settings(), _sweep(sweep, smoke)
    outcome = launch(found, settings, out, cpus, accept_code)
    if outcome.input_errors:
        raise InputError(outcome.input_errors[0])
    return Study.load(found.name, settings)


def pareto(study: Study | str, objectives: "Sequence[Objective]" = ()) -> "tuple[Point, ...]":
    """The points of a study, or of the sweep of that name, by the first objective; those on the front are marked.

    Args:
        objectives: default: the first two of the shipped sweep of the study's name.

    Example:
        >>> pareto("asr.demo", [Objective("per"), Objective("real_time_factor")])  # doctest: +SKIP
    """
    from orchestrator.pareto.front import front
    from search_spaces.find import find_sweep

    loaded = Study.load(study) if isinstance(study, str) else study
    return front(loaded, tuple(objectives) or find_sweep(loaded.sweep).objectives[:2])


def _sweep(sweep: "Sweep | str", smoke: bool) -> "Sweep":
    from search_spaces.find import find_sweep

    if isinstance(sweep, str):
        return find_sweep(sweep, smoke)
    if smoke:
        raise InputError("`smoke` goes with the name of a shipped sweep; give the sweep in its small size instead.")
    return sweep
