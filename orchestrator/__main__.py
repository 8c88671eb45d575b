"""`python -m orchestrator`: the command from whatever folder the sources lie in, which is how a job starts it."""

from orchestrator.cli.main import main

if __name__ == "__main__":
    main()
