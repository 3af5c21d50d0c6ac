# How attempts ended, in the account they ran as: sh -s -- PID TICKS DIRECTORY …
# Prints "PID alive" or "PID said <first line of rc>" for each, then "done".
set -f
echo
while [ $# -ge 3 ]; do
    stat=$(cat "/proc/$1/stat" 2>/dev/null </dev/null) && stat=${stat##*) } || stat=
    # shellcheck disable=SC2086
    ticks=$(set -- $stat; [ "${1-Z}" = Z ] || echo "${20-}")
    if [ "$ticks" = "$2" ]; then
        echo "$1 alive"
    else
        echo "$1 said $(head -c 32 "$3/rc" 2>/dev/null </dev/null | head -n 1)"
    fi
    shift 3
done
echo "done"
