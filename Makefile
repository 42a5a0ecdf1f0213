# Every target sets up what it needs in .venv; nothing outside this folder is written but pip's cache.
# A CUDA machine: make demo TARGET=gpu. CPU builds of PyTorch come from the package index or from PyTorch's own;
# TORCH_INDEX=URL names another one.
TARGET ?= cpu
PYTHON ?= python3
TORCH_INDEX ?=
VENV := .venv
BIN := $(VENV)/bin
LOCK := infra/locks/$(TARGET).txt
READY := $(VENV)/.ready-$(TARGET)
BENCH_OUT ?= .winnow/bench
COMPARISONS ?= 10000000
FAULTS_OUT ?= .winnow/faults
GPU_OUT ?= .winnow/gpu-check
PROVIDER ?= vllm
DEVICE ?= cuda
RUNS ?= 20000
FUZZ ?= tests
# What meets SQLAlchemy, Prefect, FastAPI, LiteLLM and numpy, and needs no vLLM.
TESTS_OF_VERSIONS := tests/algorithms tests/storage tests/tasks/engines/test_litellm_engine.py tests/tasks/test_server_keys.py \
	tests/flows/test_prefect_server.py tests/flows/test_work_pool.py tests/flows/test_served_campaign.py \
	tests/flows/test_scheduled_flows.py tests/flows/test_schedule_served.py
FUZZ_EXAMPLES ?= 1000
FUZZ_SEED ?= $(shell od -An -N4 -tu4 /dev/urandom | tr -d ' ')

# Caches and settings that libraries would otherwise put in the home folder.
export PREFECT_HOME ?= $(CURDIR)/.winnow/prefect
export HF_HOME ?= $(CURDIR)/.winnow/cache/huggingface
export VLLM_CACHE_ROOT ?= $(CURDIR)/.winnow/cache/vllm
export VLLM_CONFIG_ROOT ?= $(CURDIR)/.winnow/cache/vllm-config
export TORCHINDUCTOR_CACHE_DIR ?= $(CURDIR)/.winnow/cache/inductor
export TRITON_CACHE_DIR ?= $(CURDIR)/.winnow/cache/triton
export HF_HUB_OFFLINE ?= 1
export VLLM_NO_USAGE_STATS ?= 1
export DO_NOT_TRACK ?= 1
# Otherwise every build begins with news of the theme.
export NO_MKDOCS_2_WARNING ?= 1

.PHONY: help install demo test check newest oldest wheel lint format docs bench bench-best-mean bench-champion bench-best-duel bench-certify bench-route bench-errors bench-storage bench-view pictures bench-lookahead bench-throughput bench-judging bench-agents bench-loads bench-scale bench-harness bench-peers bench-inspect gpu-check faults faults-page machines fuzz lock clean
help: ## List the targets.
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 18

install: $(READY) ## Install Winnow and all it needs into .venv.

$(READY): $(LOCK) pyproject.toml infra/install.sh infra/torch.sh
	@PYTHON="$(PYTHON)" TORCH_INDEX="$(TORCH_INDEX)" sh infra/install.sh $(VENV) $(LOCK)
	@touch $@

demo: install ## Train small models and find the best of them.
	@$(BIN)/winnow demo

# Hundreds of processes load the same modules: they are compiled once, also where the environment keeps no bytecode.
test: install ## Run the whole suite.
	@sh infra/chromium.sh
	@env -u PYTHONDONTWRITEBYTECODE $(BIN)/python -m pytest tests --numprocesses 3 --dist loadfile --no-loadscope-reorder

check: install lint ## Run linters, type checks and the quick tests: no engines, servers or simulations.
	@$(BIN)/python -m pytest tests/algorithms tests/storage tests/tasks tests/test_architecture.py -m "not slow" --numprocesses 2 --dist loadfile

wheel: install ## Build the wheel and try it in .winnow/wheel, where plain pip installs it.
	@TORCH_INDEX="$(TORCH_INDEX)" sh infra/wheel.sh $(BIN)/python $(LOCK) .winnow/wheel

# Releases that the locks do not name: on vLLM's conditions the locks stay at older ones.
newest: ## Run the tests that need no vLLM with the newest releases that pyproject.toml allows (needs uv).
	@sh infra/versions.sh highest .winnow/newest && .winnow/newest/bin/python -m pytest $(TESTS_OF_VERSIONS)

oldest: ## Run them with the oldest ones (needs uv).
	@sh infra/versions.sh lowest-direct .winnow/oldest && .winnow/oldest/bin/python -m pytest $(TESTS_OF_VERSIONS)

lint: install ## Run linters and type checks.
	@$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy

format: install ## Format the code.
	@$(BIN)/ruff format . && $(BIN)/ruff check --fix .

docs: install ## Build the documentation site, in build/docs.
	@$(BIN)/python -m mkdocs build
	@echo "build/docs/index.html is its first page; $(BIN)/python -m mkdocs serve shows it while it is written"

bench: install ## Measure Winnow beside plain vLLM and SQLite; results in .winnow/bench.
	@test -d .winnow/demo || { echo "the demo's models are measured: run make demo first"; exit 2; }
	@$(BIN)/python -m tests.benchmarks --out $(BENCH_OUT)

bench-best-mean: install ## Measure the best-mean selectors on real score tables: make bench-best-mean DATA=folder.
	@test -n "$(DATA)" || { echo "name the folder of score tables: make bench-best-mean DATA=path"; exit 2; }
	@$(BIN)/python -m tests.benchmarks.best_mean --data "$(DATA)" --out $(BENCH_OUT)

bench-champion: install ## Comparisons to a valid stop on real score tables (resumable): make bench-champion DATA=folder.
	@test -n "$(DATA)" || { echo "name the folder of score tables: make bench-champion DATA=path"; exit 2; }
	@OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m tests.benchmarks.champion --data "$(DATA)" --out $(BENCH_OUT) --speed --histories 10

bench-best-duel: install ## Measure the best-duel selectors on the published synthetic experiments.
	@$(BIN)/python -m tests.benchmarks.best_duel --out $(BENCH_OUT)

bench-certify: install ## Measure the certifying selectors on real loss tables: make bench-certify DATA=folder.
	@test -n "$(DATA)" || { echo "name the folder of loss tables: make bench-certify DATA=path"; exit 2; }
	@$(BIN)/python -m tests.benchmarks.certify --data "$(DATA)" --out $(BENCH_OUT)

bench-route: install ## Measure the routing selectors on real prompts: make bench-route DATA=folder.
	@test -n "$(DATA)" || { echo "name the folder of tasks: make bench-route DATA=path"; exit 2; }
	@test -d .winnow/demo || { echo "the demo's models are routed to: run make demo first"; exit 2; }
	@OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m tests.benchmarks.route --data "$(DATA)" --out $(BENCH_OUT)

bench-errors: install ## How often proven answers are wrong, in adversarial worlds: make bench-errors RUNS=n (resumable).
	@OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m tests.benchmarks.errors --out $(BENCH_OUT) --runs $(RUNS)

bench-storage: install ## Measure ten million comparisons in SQLite and PostgreSQL: make bench-storage COMPARISONS=n.
	@$(BIN)/python -m tests.benchmarks.storage --out $(BENCH_OUT) --comparisons $(COMPARISONS)

bench-view: install ## Measure the pages of ten million comparisons, and their index of texts: make bench-view COMPARISONS=n.
	@$(BIN)/python -m tests.benchmarks.view --out $(BENCH_OUT) --comparisons $(COMPARISONS)

pictures: install ## Draw the documentation's pictures again from the quick demo, and say what axe-core finds.
	@$(BIN)/winnow demo --quick
	@PYTHONPATH=tests:tests/flows $(BIN)/python -m tests.pictures

bench-lookahead: install ## Time to a decision with rounds in flight, texts of very different lengths: make bench-lookahead [DATA=folder].
	@OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m tests.benchmarks.lookahead --out $(BENCH_OUT) $(if $(DATA),--data "$(DATA)")

bench-throughput: install ## Campaigns beside one call of an engine that is asked the same, scripted and on vLLM.
	@OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m tests.benchmarks.throughput --out $(BENCH_OUT) --real

bench-judging: install ## What judging by a model takes over the same calls made plainly, on transformers and vLLM.
	@OMP_NUM_THREADS=1 $(BIN)/python -m tests.benchmarks.judging --out $(BENCH_OUT)

bench-agents: install ## What a campaign of slow agents that fail now and then takes over the ideal, sixteen at once.
	@OMP_NUM_THREADS=1 $(BIN)/python -m tests.benchmarks.agents --out $(BENCH_OUT)

bench-loads: install ## Count loads with more models than places, planned and naive, and time them with vLLM imported once or by each.
	@OMP_NUM_THREADS=1 $(BIN)/python -m tests.benchmarks.loads --out $(BENCH_OUT)

bench-scale: install ## What Winnow itself takes of large campaigns, step by step, on an engine that answers at once.
	@OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m tests.benchmarks.scale --out $(BENCH_OUT)

bench-harness: install ## Time to the winner beside lm-eval: make bench-harness LM_EVAL=python.
	@test -n "$(LM_EVAL)" || { echo "name an interpreter that has lm-eval (tests/benchmarks/harness.py says how): make bench-harness LM_EVAL=path"; exit 2; }
	@test -d .winnow/demo || { echo "the demo's models are measured: run make demo first"; exit 2; }
	@$(BIN)/python -m tests.benchmarks.harness --out $(BENCH_OUT) --lm-eval "$(LM_EVAL)"

bench-peers: install ## Log-likelihoods and scores beside lm-eval's, example by example: make bench-peers LM_EVAL=python.
	@test -n "$(LM_EVAL)" || { echo "name an interpreter that has lm-eval (tests/benchmarks/peers.py says how): make bench-peers LM_EVAL=path"; exit 2; }
	@test -d .winnow/demo || { echo "the demo's models are compared: run make demo first"; exit 2; }
	@$(BIN)/python -m tests.benchmarks.peers --out $(BENCH_OUT) --lm-eval "$(LM_EVAL)"

bench-inspect: install ## Messages and scores beside Inspect's, example by example: make bench-inspect INSPECT=python.
	@test -n "$(INSPECT)" || { echo "name an interpreter that has inspect-ai (docs/how-to/inspect-tasks.md says how): make bench-inspect INSPECT=path"; exit 2; }
	@test -d .winnow/demo || { echo "the demo's models are compared: run make demo first"; exit 2; }
	@$(BIN)/python -m tests.benchmarks.inspect_peers --out $(BENCH_OUT) --inspect "$(INSPECT)"

gpu-check: ## Try Winnow on this machine's GPUs: make gpu-check [PROVIDER=transformers] [DEVICE=cpu] [MODEL=FOLDER].
	@test "$(DEVICE)" = cpu || test -e /dev/nvidiactl || test -e /dev/dxg || { echo "gpu-check: there is no CUDA device on this machine; make gpu-check DEVICE=cpu tries the same without one"; exit 2; }
	@$(MAKE) --no-print-directory install TARGET=$(if $(filter cpu,$(DEVICE)),cpu,gpu)
	@$(BIN)/python -m tests.gpu_check --out $(GPU_OUT) --provider $(PROVIDER) --device $(DEVICE) $(if $(MODEL),--model '$(MODEL)')

faults: install ## Inject faults and kills, and write docs/faults.md; started again, it continues.
	@$(BIN)/python -m tests.faults --out $(FAULTS_OUT) --kills --page docs/faults.md --tables tests/benchmarks/results

faults-page: install ## Write docs/faults.md from its tables.
	@$(BIN)/python -m tests.faults --out $(FAULTS_OUT) --no-faults --page docs/faults.md --tables tests/benchmarks/results

machines: install ## A Ray cluster over two simulated machines, one of which dies (needs root).
	@$(BIN)/python -m tests.machines --out $(FAULTS_OUT)

fuzz: FUZZ_SEED := $(FUZZ_SEED)
fuzz: install ## Try new random examples of every property: make fuzz FUZZ_EXAMPLES=n [FUZZ=folder].
	@echo "the same examples again: make fuzz FUZZ=$(FUZZ) FUZZ_EXAMPLES=$(FUZZ_EXAMPLES) FUZZ_SEED=$(FUZZ_SEED)"
	@FUZZ_EXAMPLES=$(FUZZ_EXAMPLES) $(BIN)/python -m pytest $(FUZZ) -m hypothesis --hypothesis-profile fuzz \
		--hypothesis-seed $(FUZZ_SEED) --timeout 0 --numprocesses 3 --dist load

lock: ## Resolve the locks anew (needs uv).
	@sh infra/locks/lock.sh

clean: ## Remove everything the targets made.
	rm -rf $(VENV) .winnow .pytest_cache .mypy_cache .ruff_cache .hypothesis *.egg-info build
