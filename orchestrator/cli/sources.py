"""The command `sources`: what the papers show and say, and what answers it."""

from typing import Annotated, Any

import typer

from orchestrator.console.printing import Format, OutputFormat, out, print_rows


def sources(
    place: Annotated[
        str | None, typer.Argument(metavar="[PLACE]", help="Words of a source or a place in it, such as 'Table 5.1'.")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="List the statements beside tables and figures.")] = False,
    format: OutputFormat = Format.table,
) -> None:
    """List every table and figure of the sources, with the sweeps and the command that answer it.

    --all lists every statement too. What nothing answers says why. json and csv always list statements, with the
    columns source, place, kind (item or statement), says, num_numbers and num_statements (the claims about it), sweeps,
    command (with SWEEP for each of the sweeps) and why.
    """
    from search_spaces.sources import everything, items, of_place

    is_table = format is Format.table
    rows = of_place(place) if place else items() if is_table and not every else everything()
    records: list[dict[str, Any]] = []
    for row in rows:
        if not is_table:
            records.append(vars(row) | {"sweeps": " ".join(row.sweeps)})
            continue
        answer = row.why or f"{row.command}: {', '.join(row.sweeps)}"
        records.append(
            {
                "source": row.source.partition(" (")[0],
                "place": row.place,
                "says": row.says,
                "claims": row.num_numbers + row.num_statements or "",
                "answered by": f"nothing: {answer}" if row.why else answer,
            }
        )
    print_rows(records, format, "Sources", whole=("place",))
    if is_table and not (place or every):
        out.print("`ponderay sources --all` lists statements too, `ponderay sources PLACE` those of a place.")
