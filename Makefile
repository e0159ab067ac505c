# Every command of the course. The first one to run makes VENV; the later ones find it ready.
PYTHON ?= python3.13 python3.12 python3.11 python3.14 python3 python
VENV ?= .venv
LOWEST = build/venv-lowest
LOWEST_PYTHON ?= $(VENV)/bin/python
BARE = build/venv-bare
QUICK = "not slow and not mpi and not gpu and not browser"
PYTEST = pytest -n 4 --dist loadfile
NBVAL = --nbval-lax --nbval-current-env --nbval-cell-timeout=300
IN_VENV = exec env PATH="$(abspath $(VENV))/bin:$$PATH" $(VENV)/bin/python -m
SUPPORTED = import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14))

# NumPy keeps to one core, as the lessons say; clusters draw no progress bars; plots stay inline;
# compiled modules are kept.
export OPENBLAS_NUM_THREADS ?= 1
export MKL_NUM_THREADS ?= 1
export IPP_NONINTERACTIVE = 1
# What is for Python, as it was written: make would run a $(shell …) in it.
NUMBERS = LESSON LESSONS TITLE DUE SEED
$(foreach name,$(NUMBERS),$(eval override $(name) := $$(value $(name))))
export $(NUMBERS)
unexport MPLBACKEND PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help course quick test break budget setup lab zip assignment render stamp render-check test-lowest test-bare browser gpu gpu-report tune-table code-table clean

help:  ## show this list
	@sed -n 's/^\([a-z-]*\):.*##/\1/p' Makefile | while read -r target text; do \
	  printf '  make %-13s %s\n' "$$target" "$$text"; done

course: setup  ## pages in build/course/index.html, at once; then every lesson, run on this machine
	@$(IN_VENV) cnnlab.course run $$LESSON

# Waiting threads and ranks leave the cores to other tests.
quick test test-lowest test-bare browser: export CNNLAB_OFFLINE = 1
quick test test-lowest test-bare: export OMP_WAIT_POLICY = passive
quick test test-lowest: export MPIR_CVAR_POLLS_BEFORE_YIELD = 1
quick: setup  ## ruff, then the unit tests that need little time: for most edits
	@$(IN_VENV) ruff check .
	@$(IN_VENV) ruff format --check .
	@$(IN_VENV) tests.warm
	@$(IN_VENV) $(PYTEST) -m $(QUICK) tests

test: setup  ## ruff, then the unit tests and every lesson under pytest
	@$(IN_VENV) ruff check .
	@$(IN_VENV) ruff format --check .
	@$(IN_VENV) tests.warm
	@$(IN_VENV) $(PYTEST) --no-loadscope-reorder $(NBVAL) notebooks tests

budget: setup  ## lines of code by room, beside their budgets
	@$(IN_VENV) tests.test_budget

break: setup  ## break what lessons define in every way, and see that a later cell notices (LESSON=05)
	@$(IN_VENV) tests.lessons.breaking $$LESSON

setup: $(VENV)/installed  ## only make .venv and install into it
	@$(if $(filter setup,$(MAKECMDGOALS)),echo "Ready: make course runs every lesson; make lab opens them",:)

lab: setup  ## open JupyterLab at the first lesson, on a copy in work/, which it keeps
	@$(IN_VENV) cnnlab.course copy
	@$(IN_VENV) jupyterlab --ServerApp.root_dir="$(CURDIR)" \
	  $$([ "$$(id -u)" = 0 ] && echo --allow-root) work/00_start_here.ipynb

zip: setup  ## build/cnnlab.zip for students: the lessons, and all that they need
	@$(IN_VENV) cnnlab.course zip

assignment: setup  ## exercises to hand in, an nbgrader course: LESSONS="05 12 31" [TITLE= DUE= SEED=]
	@$(IN_VENV) cnnlab.course assignment "--title=$$TITLE" "--due=$$DUE" "--seed=$$SEED" -- "$$LESSONS"

render: setup  ## execute the committed lessons in place (LESSON=01 for one)
	@$(IN_VENV) cnnlab.course render $$LESSON

stamp: setup  ## take in edited prose; write titles, badges, setup cells, answers and all tables anew, running nothing
	@$(IN_VENV) cnnlab.course stamp $$LESSON

render-check: setup  ## prove the committed lessons canonical and the tables up to date, without running them
	@$(IN_VENV) cnnlab.course check $$LESSON

# Kernels need no tests of their own there: training with each strategy calls them all. Methods,
# ranks, measuring and the course's own tools stand on parts that are tested there.
test-lowest: $(LOWEST)/installed  ## most quick tests with the lowest versions allowed, and a lesson beside a zip
	@$(LOWEST)/bin/python -m tests.warm
	@PATH="$(CURDIR)/$(LOWEST)/bin:$$PATH" $(LOWEST)/bin/python -m $(PYTEST) -m $(QUICK) tests \
	  $(foreach room,kernels cuda check distributed measure lessons course ranks,--ignore=tests/$(room))
	@PATH="$(CURDIR)/$(LOWEST)/bin:$$PATH" $(LOWEST)/bin/python -m pytest -m slow tests/course/test_handout.py

# No program is in reach but those of a folder with no mpiexec and no compiler beside ziglang's.
test-bare: $(BARE)/installed  ## every lesson as on a machine without MPI, ziglang its only compiler
	@PATH="$(CURDIR)/$(BARE)/bin" $(BARE)/bin/python -m $(PYTEST) --no-loadscope-reorder $(NBVAL) notebooks

browser: setup $(VENV)/browser  ## the pages in Chromium, where it is installed, without a network
	@$(IN_VENV) $(PYTEST) -m browser tests/course

gpu: setup  ## on a machine with an NVIDIA GPU: its tests, and a report to commit in data/measurements
	@command -v nvidia-smi >/dev/null || { echo "make gpu: there is no NVIDIA GPU here (no nvidia-smi)"; exit 1; }
	@[ -e $(VENV)/gpu ] || { echo "installing CuPy and NVIDIA's compiler, once"; \
	  $(VENV)/bin/python $(PIP) 'cupy-cuda12x[ctk]' && touch $(VENV)/gpu; }
	@$(VENV)/bin/python -c 'from cnnlab import cuda; print(cuda.gpu()[1]); raise SystemExit(not cuda.gpu()[0])'
	@$(IN_VENV) pytest -m gpu tests/cuda
	@$(IN_VENV) pytest $(NBVAL) notebooks/3*.ipynb
	@$(IN_VENV) cnnlab train --kernels device --batch 256
	@$(IN_VENV) cnnlab bench --kernels loops,vector,device --batch 256 --record data/measurements \
	  $$($(VENV)/bin/python -c 'import torch' 2>/dev/null && echo --against torch)

gpu-report: setup  ## registers, local and shared memory, occupancy of each CUDA kernel; no GPU needed
	@$(IN_VENV) cnnlab.cuda.occupancy

tune-table: setup  ## measure all schedules of lesson 64 anew, and replay its tuners on them
	@CNNLAB_STUDY=1 $(IN_VENV) cnnlab.course render 64

code-table: setup  ## compile, read and time the kernels of lesson 69 anew: five minutes
	@CNNLAB_STUDY=69-table $(IN_VENV) cnnlab.course render 69

clean:  ## remove .venv and build/
	@rm -rf .venv build

# $(call venv,FOLDER,PYTHONS): a virtual environment with the first of them that fits, made once.
define venv
	@$(1)/bin/python -c 'import pip; $(SUPPORTED)' 2>/dev/null && exit 0; \
	for python in $(2) none; do \
	  "$$python" -c '$(SUPPORTED)' 2>/dev/null && break; \
	done; \
	if [ "$$python" = none ]; then \
	  echo "cnnlab needs Python 3.11 to 3.14; tried: $(PYTHON)."; \
	  echo "Here python3 is $$(python3 --version 2>&1). Install one of these, or name it:"; \
	  echo "  make setup PYTHON=/path/to/python3.12"; exit 1; fi; \
	echo "[1/2] making $(1) with $$($$python --version)"; \
	if "$$python" -c 'import venv, ensurepip' 2>/dev/null; then \
	  "$$python" -m venv --clear $(1); exit; fi; \
	echo "      this Python comes without venv, fetching virtualenv instead"; \
	"$$python" -m pip install --quiet --quiet --target build/virtualenv virtualenv \
	&& PYTHONPATH=build/virtualenv "$$python" -m virtualenv --quiet --clear $(1) \
	|| { echo "Could not make $(1): install venv (Debian, Ubuntu: apt install python3-venv)."; exit 1; }
endef

# $(call install,FOLDER,what): uv takes ten seconds for what pip needs a minute or more for. Where
# pip is told of an index of its own, which uv would not know, or where uv fails, pip does it. Two -q
# hide warnings about the local pip configuration; errors are still shown. Only what the course
# imports is compiled, by the first import, which is much quicker than all there is.
PIP = -m pip install --quiet --quiet --disable-pip-version-check --no-input
define install
	@python=$(1)/bin/python; \
	if ! $$python -m pip config list 2>/dev/null | grep -q '[.]index-url' \
	&& $$python $(PIP) uv && $$python -m uv pip install --quiet --python $$python \
	  --link-mode copy --editable $(2); then exit; fi; \
	echo "      with pip: a minute or two"; \
	$$python $(PIP) --no-compile --editable $(2)
endef

$(VENV)/installed: pyproject.toml
	$(call venv,$(VENV),$(PYTHON))
	@echo "[2/2] installing NumPy, Numba, JupyterLab, MPICH, … once: half a minute or more"
	$(call install,$(VENV),'.[dev]')
	@$(VENV)/bin/python -c 'import matplotlib.pyplot, myst_nb.sphinx_ext, nbclient, numba, sklearn.datasets, sphinx_book_theme'
	@touch $@

$(VENV)/browser: $(VENV)/installed
	@echo "installing Playwright, once"
	@$(VENV)/bin/python $(PIP) --no-build-isolation --editable '.[browser]'
	@touch $@

$(LOWEST)/installed: pyproject.toml | setup
	$(call venv,$(LOWEST),$(LOWEST_PYTHON))
	@$(VENV)/bin/python -m cnnlab.course lowest > build/lowest.txt
	@echo "[2/2] installing the lowest versions, as listed in build/lowest.txt: half a minute or more"
	$(call install,$(LOWEST),'.[dev]' --constraint build/lowest.txt)
	@touch $@

$(BARE)/installed: pyproject.toml
	$(call venv,$(BARE),$(PYTHON))
	@echo "[2/2] installing what lessons need without MPI, and ziglang: a minute or two"
	$(call install,$(BARE),'.[lessons]' ziglang symbolic pytest pytest-xdist nbval)
	@$(BARE)/bin/python -c 'import ipykernel.kernelapp, matplotlib.pyplot, nbval, numba, scipy.stats, sklearn.datasets'
	@touch $@
