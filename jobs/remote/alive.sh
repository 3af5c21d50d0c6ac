# Which of these processes are still the same: sh -s -- PID TICKS [PID TICKS …]
# Prints "boot BOOT_ID"; "PID alive" and, for the processes of its session, "PID has PID TICKS", or
# "PID gone"; "hidden" where /proc shows only one's own processes; at the end "done".
# Begins with a new line, as the others do: start-up files of an account may print without one.
printf '\nboot %s\n' "$(cat /proc/sys/kernel/random/boot_id </dev/null)"
[ -e /proc/1/stat ] || echo hidden
set -f
# Sets `ticks` to the start tick of a process, to nothing where it is gone or a zombie. Forks
# nothing: sessions may have hundreds of processes.
look_at() {
    ticks=; stat=
    { IFS= read -r stat < "/proc/$1/stat"; } 2>/dev/null
    # shellcheck disable=SC2086
    set -- ${stat##*) }
    [ "${1-Z}" = Z ] || ticks=${20-}
}
while [ $# -ge 2 ]; do
    look_at "$1"
    if [ -n "$ticks" ] && [ "$ticks" = "$2" ]; then
        echo "$1 alive"
        for member in $(ps -o pid= -s "$1" 2>/dev/null </dev/null); do
            look_at "$member"
            [ -z "$ticks" ] || echo "$1 has $member $ticks"
        done
    else
        echo "$1 gone"
    fi
    shift 2
done
echo "done"
