# Signal one attempt, in the account it runs as:
#   sh -s -- PID TICKS BOOT_ID SIGNAL MARK
# The process is compared with what was recorded in the same command that signals it. Prints
# "sent N" (processes told), "gone", or "failed SENTENCE".
pid=$1; want=$2; boot=$3; signal=$4; mark=$5
case $pid in '' | *[!0-9]* | 0 | 1) echo "failed That is no process id."; exit 0 ;; esac
case $signal in INT | TERM | KILL) ;; *) echo "failed That is no signal."; exit 0 ;; esac
[ "$(cat /proc/sys/kernel/random/boot_id </dev/null)" = "$boot" ] || { echo gone; exit 0; }
sent=0
stat=$(cat "/proc/$pid/stat" 2>/dev/null </dev/null) && stat=${stat##*) } || stat=
set -f
# shellcheck disable=SC2086
set -- $stat
if [ "${20-}" = "$want" ] && [ "${1-}" != Z ] && [ -O "/proc/$pid" ]; then
    # Field 3 after the name is the process group: the wrapper leads the group of its command.
    kill -s "$signal" -- "-$3" 2>/dev/null && sent=$((sent + 1))
fi
set +f
# Children that left the group still carry the mark of the attempt. Not for Ctrl-C.
if [ "$signal" != INT ]; then
    for environ in /proc/[0-9]*/environ; do
        [ -O "$environ" ] || continue
        tr '\0' '\n' < "$environ" 2>/dev/null | grep -qxF "$mark" || continue
        other=${environ#/proc/}; other=${other%/environ}
        [ "$other" = "$pid" ] && continue
        kill -s "$signal" "$other" 2>/dev/null && sent=$((sent + 1))
    done
fi
if [ "$sent" -gt 0 ]; then echo "sent $sent"; else echo gone; fi
