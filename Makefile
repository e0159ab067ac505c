# Every command of the course. The first one to run makes VENV; the later ones find it ready.
PYTHON ?= python3.13 python3.12 python3.11 python3 python
VENV ?= .venv
LOWEST = build/venv-lowest
LESSON ?=
IN_VENV = PATH="$(abspath $(VENV))/bin:$$PATH" $(VENV)/bin/python -m
SUPPORTED = import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))

# NumPy keeps to one core, as the lessons say; clusters draw no progress bars; plots stay inline;
# compiled modules are kept.
export OPENBLAS_NUM_THREADS ?= 1
export MKL_NUM_THREADS ?= 1
export IPP_NONINTERACTIVE = 1
unexport MPLBACKEND PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help course quick test setup lab render render-check test-lowest clean

help:  ## show this list
	@sed -n 's/^\([a-z-]*\):.*##/\1/p' Makefile | while read -r target text; do \
	  printf '  make %-13s %s\n' "$$target" "$$text"; done

course: setup  ## run every lesson on this machine; pages in build/course/index.html
	@$(IN_VENV) cnnlab.course run $(LESSON)

quick test test-lowest: export CNNLAB_OFFLINE = 1
quick: setup  ## ruff, then the unit tests that need little time: for most edits
	@$(IN_VENV) ruff check .
	@$(IN_VENV) ruff format --check .
	@$(IN_VENV) pytest -m "not slow and not mpi and not gpu" tests

test: setup  ## ruff, then the unit tests and every lesson under pytest
	@$(IN_VENV) ruff check .
	@$(IN_VENV) ruff format --check .
	@$(IN_VENV) pytest --nbval-lax --nbval-current-env --nbval-cell-timeout=300 tests notebooks

setup: $(VENV)/installed  ## only make .venv and install into it
	@$(if $(filter setup,$(MAKECMDGOALS)),echo "Ready: make course runs every lesson; make lab opens them",:)

lab: setup  ## open JupyterLab at the first lesson
	@$(IN_VENV) jupyterlab notebooks/00_start_here.ipynb

render: setup  ## execute the committed lessons in place (LESSON=01 for one)
	@$(IN_VENV) cnnlab.course render $(LESSON)

render-check: setup  ## prove the committed lessons canonical, without running them
	@$(IN_VENV) cnnlab.course check $(LESSON)

test-lowest: $(LOWEST)/installed  ## the unit tests against the lowest versions allowed
	@PATH="$(CURDIR)/$(LOWEST)/bin:$$PATH" $(LOWEST)/bin/python -m pytest tests

clean:  ## remove .venv and build/
	@rm -rf .venv build

# $(call venv,FOLDER,PYTHONS): a virtual environment with the first of them that fits, made once.
define venv
	@$(1)/bin/python -c 'import pip; $(SUPPORTED)' 2>/dev/null && exit 0; \
	for python in $(2) none; do \
	  "$$python" -c '$(SUPPORTED)' 2>/dev/null && break; \
	done; \
	if [ "$$python" = none ]; then \
	  echo "cnnlab needs Python 3.11, 3.12 or 3.13; tried: $(PYTHON)."; \
	  echo "Here python3 is $$(python3 --version 2>&1). Install a newer one, or name one:"; \
	  echo "  make setup PYTHON=/path/to/python3.12"; exit 1; fi; \
	echo "[1/2] making $(1) with $$($$python --version)"; \
	if "$$python" -c 'import venv, ensurepip' 2>/dev/null; then \
	  "$$python" -m venv --clear $(1); exit; fi; \
	echo "      this Python comes without venv, fetching virtualenv instead"; \
	"$$python" -m pip install --quiet --quiet --target build/virtualenv virtualenv \
	&& PYTHONPATH=build/virtualenv "$$python" -m virtualenv --quiet --clear $(1) \
	|| { echo "Could not make $(1): install venv (Debian, Ubuntu: apt install python3-venv)."; exit 1; }
endef

# $(call install,FOLDER,options): uv takes ten seconds for what pip needs a minute or more for. Where
# pip is told of an index of its own, which uv would not know, or where uv fails, pip does it. Two -q
# hide warnings about the local pip configuration; errors are still shown. Only what the course
# imports is compiled, by the first import, which is much quicker than all there is.
PIP = -m pip install --quiet --quiet --disable-pip-version-check --no-input
define install
	@python=$(1)/bin/python; \
	if ! $$python -m pip config list 2>/dev/null | grep -q '[.]index-url' \
	&& $$python $(PIP) uv && $$python -m uv pip install --quiet --python $$python \
	  --link-mode copy --editable '.[dev]' $(2); then exit; fi; \
	echo "      with pip: a minute or two"; \
	$$python $(PIP) --no-compile --editable '.[dev]' $(2)
endef

$(VENV)/installed: pyproject.toml
	$(call venv,$(VENV),$(PYTHON))
	@echo "[2/2] installing NumPy, Numba, JupyterLab, MPICH, … once: half a minute or more"
	$(call install,$(VENV))
	@$(VENV)/bin/python -c 'import matplotlib.pyplot, nbclient, nbconvert, numba, sklearn.datasets'
	@touch $@

$(LOWEST)/installed: pyproject.toml | setup
	$(call venv,$(LOWEST),$(VENV)/bin/python)
	@$(VENV)/bin/python -m cnnlab.course lowest > build/lowest.txt
	@echo "[2/2] installing the lowest versions, as listed in build/lowest.txt: half a minute or more"
	$(call install,$(LOWEST),--constraint build/lowest.txt)
	@touch $@
