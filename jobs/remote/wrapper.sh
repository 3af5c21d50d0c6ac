# Runs one attempt: sh wrapper DIRECTORY LOG. Everything it learns stands in DIRECTORY:
#   id   pid, start tick and boot id of this shell      rc   "running", then "rc=<code>"
d=$1; log=$2; umask 077
# Only the first of two starts goes on.
mkdir "$d/started" 2>/dev/null || exit 75
# The block is reserved before the command runs, so that a full disk cannot swallow the code.
printf '%-16s\n' running > "$d/rc" || exit 73
stat=$(cat "/proc/$$/stat"); stat=${stat##*) }
set -f
# shellcheck disable=SC2086
ticks=$(set -- $stat; echo "${20}")
printf '%s %s %s\n' "$$" "$ticks" "$(cat /proc/sys/kernel/random/boot_id)" > "$d/id" || exit 73
set +f
# A signal is for the command; this shell stays to write down how it ended. (A caught signal is
# back to its default in the command, an ignored one would not be.)
trap : INT TERM HUP
cd "$HOME" || exit 73
# Who attaches sees the log grow; Ctrl-C there reaches the command.
if [ -t 1 ]; then (trap '' INT; exec tail -n +1 -f "$log") & watcher=$!; fi
# The environment of the job is set inside its own shell, after this one did its work.
if [ "$(head -c 2 "$d/command")" = '#!' ]; then
    chmod u+x "$d/command"
    sh -c '. "$1/env"; exec "$1/command"' job "$d" >> "$log" 2>&1 < /dev/null &
elif command -v bash > /dev/null 2>&1; then
    bash -c '. "$1/env"; . "$1/command"' job "$d" >> "$log" 2>&1 < /dev/null &
else
    sh -c '. "$1/env"; . "$1/command"' job "$d" >> "$log" 2>&1 < /dev/null &
fi
child=$!
# wait returns early, with a status over 128, when this shell itself catches a signal.
while :; do
    wait "$child"; code=$?
    kill -0 "$child" 2>/dev/null || break
done
printf 'rc=%-13s\n' "$code" | dd of="$d/rc" conv=notrunc status=none
[ -n "${watcher-}" ] && kill "$watcher" 2>/dev/null
exit "$code"
