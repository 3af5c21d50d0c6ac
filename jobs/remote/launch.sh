# Start one attempt in the account it runs as:
#   sh -s -- NAME SESSION WRAPPER COMMAND ENVIRONMENT
# The last line says "started", "running" (it was there already), "failed SENTENCE" (nothing runs,
# and nothing will) or "unclear SENTENCE". After the first two come six lines: uid; pid, start tick
# and boot id of the wrapper; its directory; its log; "screen", "screen:DIRECTORY" or "detached".
# Sent twice it starts once: the attempt's directory is made by the first and found by the next,
# and whoever takes away its directory `waiting` decides what becomes of it.
name=$1; session=$2; wrapper=$3; command=$4; environment=$5
mask=$(umask)
umask 077
say() { printf '\n%s\n' "$@"; }
fail() { say "failed $*"; exit 0; }
uid=$(id -u)
least=$(sed -n 's/^UID_MIN[[:space:]]*\([0-9]*\).*/\1/p' /etc/login.defs 2>/dev/null </dev/null)
[ "$uid" -ne 0 ] || fail "Jobs never run as root."
[ "$uid" -ge "${least:-1000}" ] || fail "Jobs do not run in accounts of the system."
[ -d "$HOME" ] && [ -w "$HOME" ] || fail "The home directory of $(id -un) is missing or not writable."
base=$HOME/.tensorhive
d=$base/jobs/$name; log=$base/logs/$name.log
no_space="Cannot write in $base: is the disk full?"
mkdir -p "$base/jobs" "$base/logs" 2>/dev/null </dev/null || fail "$no_space"
word=running
if mkdir "$d" 2>/dev/null </dev/null; then
    word=started
    # The blocks of id and rc are reserved now, so that a disk that fills up swallows neither; rc
    # comes last and says that the rest is complete.
    {
        printf '%s\n' "$wrapper" > "$d/wrapper" &&
        printf 'umask %s\n%s' "$mask" "$environment" > "$d/env" &&
        printf '%s\n' "$command" > "$d/command" &&
        printf '%-400s\n' '' > "$d/id" &&
        : >> "$log" && mkdir "$d/waiting" </dev/null &&
        printf '%-16s\n' new > "$d/rc.new" && mv "$d/rc.new" "$d/rc" </dev/null
    } 2>/dev/null || { rm -rf "$d" "$log" </dev/null; fail "$no_space"; }
fi

# up TENTHS: wait for the wrapper to have said who it is.
up() {
    n=0
    while [ "$n" -lt "$1" ]; do
        read -r pid ticks boot how < "$d/id" && [ -n "$pid" ] && return 0
        sleep 0.1 </dev/null; n=$((n + 1))
    done
    return 1
}
if [ "$word" = running ]; then
    n=0
    while [ ! -e "$d/rc" ] && [ "$n" -lt 20 ]; do sleep 0.1 </dev/null; n=$((n + 1)); done
    if [ ! -e "$d/rc" ]; then
        # Whoever prepares it has not got as far as a wrapper; without `waiting` none will run.
        touch "$d/abandoned" </dev/null
        rmdir "$d/waiting" 2>/dev/null </dev/null
        fail "An earlier start was interrupted before anything ran."
    fi
fi
begin() { screen -c /dev/null -dmS "$session" sh "$d/wrapper" "$d" "$log" </dev/null >/dev/null 2>&1; }
if [ -d "$d/waiting" ] && command -v screen >/dev/null 2>&1; then
    begin && up 20 || {
        # No usable socket directory of the system's: one of our own, per host, in the home.
        SCREENDIR=$base/screen/$(uname -n); export SCREENDIR
        mkdir -p "$SCREENDIR" </dev/null && begin && up 20
    }
fi
if [ -d "$d/waiting" ]; then
    unset SCREENDIR
    # A background command of a shell would be deaf to Ctrl-C; not every setsid can fork itself.
    if ! setsid -f sh "$d/wrapper" "$d" "$log" </dev/null >/dev/null 2>&1; then
        setsid sh "$d/wrapper" "$d" "$log" </dev/null >/dev/null 2>&1 &
    fi
fi
if ! up 40; then
    rmdir "$d/waiting" 2>/dev/null </dev/null && fail "The command did not start within some seconds."
    say "unclear The wrapper began and has not said who it is."; exit 0
fi
say "$word" "$uid" "$pid $ticks $boot" "$d" "$log" "$how"
