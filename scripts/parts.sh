#!/bin/sh
# The programs that tests run for real. As root on Debian they are installed, otherwise named.
set -eu
missing=
need() { # PACKAGE PROGRAM…
    package=$1
    shift
    for program in "$@"; do
        if ! command -v "$program" >/dev/null 2>&1 && [ ! -x "/usr/sbin/$program" ]; then
            missing="$missing $package"
            return
        fi
    done
}
need openssh-server sshd
need openssh-client ssh
need screen screen
need chromium chromium
need redis-server redis-server
need git git
need procps ps
need util-linux unshare
need iproute2 ip
[ -n "$(find /usr/lib/postgresql -name initdb 2>/dev/null | head -n 1)" ] || missing="$missing postgresql"
[ -n "$missing" ] || exit 0
if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "Installing$missing …"
    export DEBIAN_FRONTEND=noninteractive
    apt-get -o DPkg::Lock::Timeout=500 update -qq
    # shellcheck disable=SC2086
    apt-get -o DPkg::Lock::Timeout=500 install -y -qq --no-install-recommends $missing >/dev/null
else
    echo "The tests run real programs, and these are missing. As root: apt-get install$missing" >&2
    exit 1
fi
