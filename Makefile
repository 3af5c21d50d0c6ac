# What there is to do: see README.md. VENV= chooses another environment than .venv.
VENV ?= .venv
PYTHON_IN := $(VENV)/bin/python
# Settings for tools that only look: no data directory, no secrets of an installation.
TOOLS := DJANGO_SETTINGS_MODULE=tensorhive_site.test_settings
# The real settings, as a server would have them; nothing is created.
DEPLOYED := DATA_DIR=/nonexistent PUBLIC_URL=https://gpus.example.org \
	SECRET_KEY=for-the-check-only-0123456789-abcdefghijklmnopqrstuvwxyz \
	JWT_SIGNING_KEY=for-the-check-only-abcdefghijklmnopqrstuvwxyz-0123456789
SOURCES := accounts bench jobs monitoring reservations tensorhive_site tests manage.py

export VENV

.PHONY: run demo demo-clean test test-long check bench environment environment-dev

run: environment
	@exec $(PYTHON_IN) -m tensorhive_site.serve

# An installation of its own in var/demo, with simulated hosts and four weeks of use.
demo: environment
	@exec $(PYTHON_IN) -m tensorhive_site.demo

demo-clean:
	rm -rf var/demo

environment:
	@scripts/environment.sh requirements.txt

environment-dev:
	@scripts/environment.sh requirements-dev.txt

check: environment-dev
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy $(SOURCES)
	$(TOOLS) $(PYTHON_IN) manage.py makemigrations --check --dry-run
	$(TOOLS) $(PYTHON_IN) -W error manage.py spectacular --validate --fail-on-warn --file /dev/null
	$(DEPLOYED) $(PYTHON_IN) manage.py check --deploy --fail-level WARNING

# First everything on SQLite, then what touches the database again on PostgreSQL.
test: environment-dev
	@scripts/parts.sh
	$(PYTHON_IN) -m pytest -q -m "not long"
	$(PYTHON_IN) -m tests.on_postgresql -q -m "not long and not browser and not lab" tests/accounts tests/reservations tests/jobs tests/monitoring

test-long: environment-dev
	@scripts/parts.sh
	$(PYTHON_IN) -m pytest -q
	$(PYTHON_IN) -m tests.on_postgresql -q

bench: environment-dev
	@scripts/parts.sh
	$(PYTHON_IN) -m bench
