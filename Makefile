# The two commands a newcomer needs: `make demo` and `make test`.
PYTHON ?= python3
BIN := .venv/bin
DOCS := build/docs

# Else each of the tests' workers compiles all tests anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test check format docs results

demo: .venv/installed
	$(BIN)/ponderay run asr.demo
	$(BIN)/ponderay pareto asr.demo
	$(BIN)/ponderay compare asr.demo surprisal random
	@echo "This is a control with a known answer: routing by surprisal must win here, and does if all is well (docs/asr.md)."
	@echo "Browse every run in MLflow:  $(BIN)/ponderay ui"

test: .venv/installed
	$(BIN)/python -m pytest

check: .venv/installed
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m evidence.make_page --check
	$(MAKE) test

format: .venv/installed
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

results: .venv/installed
	$(BIN)/python -m evidence.make_page

docs: .venv/installed
	PDOC_ALLOW_EXEC=1 $(BIN)/pdoc --docformat google --no-show-source --output-directory $(DOCS) \
		ponderay ponderay.lightning ponderay.notebook ponderay.transformers orchestrator search_spaces trainables
	@echo "Browse the API reference:  $(DOCS)/index.html"

.venv/installed: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --constraint constraints.txt uv
	$(BIN)/uv pip install --quiet --compile-bytecode --python $(BIN)/python --constraint constraints.txt --editable ".[dev]"
	touch $@
