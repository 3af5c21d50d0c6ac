# Signal one attempt, in the account it runs as:
#   sh -s -- PID TICKS BOOT_ID SIGNAL MARK
# The process is compared with what was recorded in the same command that signals it. Signal 0 only
# looks. The last line is "sent N" (processes and groups told), "gone", or "failed SENTENCE".
echo
pid=$1; want=$2; boot=$3; signal=$4; mark=$5
case $pid in '' | *[!0-9]* | 0 | 1) echo "failed That is no process id."; exit 0 ;; esac
case $signal in 0 | INT | TERM | KILL) ;; *) echo "failed That is no signal."; exit 0 ;; esac
[ "$(cat /proc/sys/kernel/random/boot_id </dev/null)" = "$boot" ] || { echo gone; exit 0; }
set -f
# Fields of stat after the name: 1 state, 3 process group, 20 start tick.
fields() { stat=$(cat "/proc/$1/stat" 2>/dev/null </dev/null) && stat=${stat##*) } || stat=; }
sent=0; denied=0; leads=
tell() { if kill -s "$signal" -- "$1" 2>/dev/null; then sent=$((sent + 1)); else denied=1; fi; }
fields "$pid"
# shellcheck disable=SC2086
set -- $stat
if [ "${20-}" = "$want" ] && [ "${1-}" != Z ]; then
    # The wrapper leads the group of its command; whoever leads none is signalled alone.
    if [ "$3" = "$pid" ]; then leads=$pid; tell "-$pid"; else tell "$pid"; fi
fi
set +f
# Children that left the group still carry the mark of the attempt. Ctrl-C is not for them, unless
# they are all that is left.
if [ -z "$leads" ] || [ "$signal" != INT ]; then
    for environ in /proc/[0-9]*/environ; do
        [ -O "$environ" ] || continue
        tr '\0' '\n' 2>/dev/null < "$environ" | grep -qxF "$mark" 2>/dev/null || continue
        other=${environ#/proc/}; other=${other%/environ}
        fields "$other"
        # shellcheck disable=SC2086
        set -- $stat
        [ -n "${3-}" ] && [ "$1" != Z ] && [ "$3" != "$leads" ] && [ "$other" != "$pid" ] || continue
        tell "$other"
    done
fi
if [ "$sent" -gt 0 ]; then echo "sent $sent"
elif [ "$denied" -eq 1 ]; then echo "failed Its account may not signal it."
else echo gone; fi
