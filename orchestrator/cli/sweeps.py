"""The commands `sweeps` and `show`: which sweeps there are, and what one would run."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from orchestrator.cli.options import Conditions, Grid, Seeds, Smoke, SweepName, Values, find
from orchestrator.console.printing import Format, OutputFormat, out, print_rows
from trainables.errors import InputError

if TYPE_CHECKING:
    from search_spaces.sweep import Sweep


def sweeps(
    place: Annotated[
        str | None,
        typer.Argument(metavar="[PLACE]", help="A file, an import path or a family, such as asr."),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="List every sweep instead of families.")] = False,
    format: OutputFormat = Format.table,
) -> None:
    """List the families of shipped sweeps and what other packages bring; or all sweeps of a place.

    json and csv always list every sweep.
    """
    from search_spaces.find import families, installed_sweeps, others, sweeps_at

    if format is Format.table and not (place or every):
        rows = [{"family": f.name, "sweeps": f.num_sweeps, "first try": f.first, "about": f.about} for f in families()]
        rows += [
            {"family": other.name, "sweeps": "", "first try": "", "about": _record(other.name, None)["about"]}
            for other in others()
        ]
        print_rows(rows, Format.table, title="Sweeps", whole=("family", "first try"))
        hint = "`ponderay sweeps FAMILY` lists the sweeps of a family, `ponderay sweeps --all` lists all."
        out.print(hint, soft_wrap=True)
        return
    rows = [_record(found.name, found.sweep) for found in (sweeps_at(place) if place else installed_sweeps())]
    if not rows:
        rule = "a ponderay.Sweep, or a function that says `-> Sweep`"
        raise InputError(f"{place} declares no sweep: nothing at the top of the module is {rule}.")
    print_rows(rows, format, title="Sweeps", whole=("sweep",))


def _record(name: str, sweep: "Sweep | None") -> dict[str, Any]:
    if sweep is None:
        about = f"of another package; `ponderay sweeps {name}` says more"
        return {"sweep": name, "conditions": None, "seeds": None, "about": about}
    about = sweep.description
    return {"sweep": name, "conditions": sweep.num_conditions(), "seeds": len(sweep.seeds), "about": about}


def show(
    name: SweepName,
    smoke: Smoke = False,
    values: Values = None,
    seeds: Seeds = None,
    conditions: Conditions = None,
    grid: Grid = None,
) -> None:
    """Show what a sweep would run: conditions, seeds, objectives, the whole base config; and what each metric means."""
    from orchestrator.worker.trainable import load
    from search_spaces.redaction import redacted_leaves, redacted_text
    from trainables.config import flatten

    sweep = find(name, smoke, values, seeds, None, conditions, grid)
    out.print(": ".join(filter(None, (sweep.name, sweep.description))), markup=False)
    out.print(f"trainable   {sweep.trainable}\nseeds       {', '.join(map(str, sweep.seeds))}")
    out.print(f"objectives  {', '.join(f'{o.direction} {o.metric}' for o in sweep.objectives)}")
    out.print(f"reference   {sweep.reference or 'none'}")
    if sweep.sequential:
        out.print(f"by need     {sweep.sequential}", markup=False)
    for condition in sweep.conditions:
        changes = ", ".join(f"{path} = {redacted_text(repr(value))}" for path, value in condition.values.items())
        out.print(f"condition   {condition.name}: {changes or 'the base config'}", markup=False)
    if sweep.search and sweep.search.halving:
        out.print(f"halving     {sweep.search.halving}", markup=False)
    if sweep.search and sweep.search.pruned:
        out.print("pruned      a condition gets its other seeds only if nothing dominates its first")
    for path, distribution in (sweep.search.space if sweep.search else {}).items():
        out.print(f"search      {path}: {distribution}", markup=False)
    for path, value in redacted_leaves(flatten(sweep.base)).items():
        out.print(f"  {path} = {value}", markup=False)
    for metric in load(sweep.trainable).metrics:
        kind = ", ".join(word for word in (metric.unit, metric.direction) if word not in ("", "none"))
        out.print(f"metric      {metric.name}{f' ({kind})' if kind else ''}: {metric.definition}", markup=False)
