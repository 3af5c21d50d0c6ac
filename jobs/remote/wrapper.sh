# Runs one attempt: sh wrapper DIRECTORY LOG. Everything it learns stands in DIRECTORY:
#   id   pid, start tick and boot id of this shell, how to attach      rc   "running", "rc=<code>"
d=$1; log=$2; umask 077
# Of several wrappers of one attempt only one goes on.
[ ! -e "$d/abandoned" ] && rmdir "$d/waiting" 2>/dev/null || exit 75
overwrite() { dd of="$d/$1" conv=notrunc status=none; }
printf '%-16s\n' running | overwrite rc
# A signal to the group is for the command; this shell stays to write down how it ended. (A caught
# signal is back to its default in the command; an ignored one would not be.)
trap : INT TERM HUP
stat=$(cat "/proc/$$/stat"); stat=${stat##*) }
set -f
# shellcheck disable=SC2086
ticks=$(set -- $stat; echo "${20}")
set +f
how=detached
[ -z "${STY-}" ] || how=screen${SCREENDIR:+:$SCREENDIR}
printf '%s %s %s %s\n' "$$" "$ticks" "$(cat /proc/sys/kernel/random/boot_id)" "$how" | overwrite id
cd "$HOME" || cd /
# Who attaches sees the log grow; Ctrl-C there reaches the command.
if [ -t 1 ]; then (trap '' INT TERM; exec tail -n +1 -f "$log" 2>/dev/null) & watcher=$!; fi
# The job's environment is set inside its own shell, after this one did its work. In the
# foreground: a shell starts background commands deaf to Ctrl-C.
shell=$(command -v bash || command -v sh)
if [ "$(head -c 2 "$d/command")" = '#!' ]; then shell=; chmod u+x "$d/command"; fi
# shellcheck disable=SC2016
sh -c '. "$1/env"; exec ${2:+"$2"} "$1/command"' job "$d" "$shell" >> "$log" 2>&1 < /dev/null
code=$?
printf 'rc=%-13s\n' "$code" | overwrite rc
# A moment for those attached to see the last lines.
[ -z "${watcher-}" ] || { sleep 1; kill -KILL "$watcher" 2>/dev/null; }
exit "$code"
