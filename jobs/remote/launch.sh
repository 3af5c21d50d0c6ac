# Start one attempt in the account it runs as:
#   sh -s -- NAME SESSION WRAPPER COMMAND ENVIRONMENT
# Prints "started|running UID PID TICKS BOOT_ID DIRECTORY LOG HOW", or "failed SENTENCE".
# Sent twice it starts once: the directory of the attempt is made by the first and found by the next.
name=$1; session=$2; wrapper=$3; command=$4; environment=$5
umask 077
fail() { printf 'failed %s\n' "$*"; exit 0; }
[ "$(id -u)" -ne 0 ] || fail "Jobs never run as root."
[ -d "$HOME" ] && [ -w "$HOME" ] || fail "The home directory of $(id -un) is missing or not writable."
base=$HOME/.tensorhive
d=$base/jobs/$name; log=$base/logs/$name.log
mkdir -p "$base/jobs" "$base/logs" 2>/dev/null || fail "Cannot write in $base: is the disk full?"
word=running
if mkdir "$d" 2>/dev/null; then
    word=started
    printf '%s\n' "$wrapper" > "$d/wrapper" &&
    printf '%s' "$environment" > "$d/env" &&
    printf '%s\n' "$command" > "$d/command" &&
    : >> "$log" || { rm -rf "$d"; fail "Cannot write in $base: is the disk full?"; }
    : > "$d/complete" || { rm -rf "$d"; fail "Cannot write in $base: is the disk full?"; }
fi
n=0
while [ ! -e "$d/complete" ] && [ $n -lt 20 ]; do sleep 0.1 </dev/null; n=$((n + 1)); done
[ -e "$d/complete" ] || fail "An earlier start was interrupted before anything ran."

# Wait for the wrapper to say who it is.
up() {
    n=0
    while [ $n -lt "$1" ]; do
        [ -s "$d/id" ] && return 0
        sleep 0.1 </dev/null; n=$((n + 1))
    done
    return 1
}
how=$(cat "$d/how" 2>/dev/null)
if [ ! -d "$d/started" ] && command -v screen >/dev/null 2>&1; then
    how=screen; echo "$how" > "$d/how"
    screen -c /dev/null -dmS "$session" sh "$d/wrapper" "$d" "$log" </dev/null >/dev/null 2>&1
    if ! up 20; then
        # No usable socket directory of the system's: one of our own, in the home.
        SCREENDIR=$base/screen; export SCREENDIR
        mkdir -p -m 700 "$SCREENDIR"; how="screen:$SCREENDIR"; echo "$how" > "$d/how"
        screen -c /dev/null -dmS "$session" sh "$d/wrapper" "$d" "$log" </dev/null >/dev/null 2>&1
        up 20
    fi
fi
if [ ! -d "$d/started" ]; then
    how=detached; echo "$how" > "$d/how"
    setsid sh "$d/wrapper" "$d" "$log" </dev/null >/dev/null 2>&1 &
fi
up 50 || fail "The command did not start within some seconds."
printf '%s %s %s %s %s %s\n' "$word" "$(id -u)" "$(cat "$d/id")" "$d" "$log" "$how"
