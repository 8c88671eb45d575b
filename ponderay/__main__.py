"""`python -m ponderay` is the command `ponderay`."""

from orchestrator.cli.main import main

main()
