# Which of these processes are still the same: sh -s -- PID TICKS [PID TICKS …]
# Prints "boot BOOT_ID", then "PID alive" or "PID gone", then "done".
echo "boot $(cat /proc/sys/kernel/random/boot_id </dev/null)"
set -f
while [ $# -ge 2 ]; do
    stat=$(cat "/proc/$1/stat" 2>/dev/null </dev/null) && stat=${stat##*) } || stat=
    # shellcheck disable=SC2086
    ticks=$(set -- $stat; [ "${1-}" = Z ] || echo "${20-}")
    if [ -n "$ticks" ] && [ "$ticks" = "$2" ]; then echo "$1 alive"; else echo "$1 gone"; fi
    shift 2
done
echo "done"
