# One look at a host, as text between markers. POSIX sh; sent once to a shell that is kept, which is
# then asked for a round by the line "th_probe WORD [first] [pmon] [skip-gpu]". Standard input is
# where those lines come from, so every command here reads /dev/null.
#
# Statuses of our own: 69 left out on request, 73 no private directory, 74 no login records,
# 75 another nvidia-smi of ours still runs, 76 cut because there was too much.

LC_ALL=C
LANG=C
PATH=$PATH:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin:/usr/lib/wsl/lib:/usr/local/nvidia/bin
export LC_ALL LANG PATH
unset IFS
umask 077

th_timeout=
timeout -k 1 5 true </dev/null >/dev/null 2>&1 && th_timeout=y
th_uid=$(id -u </dev/null 2>/dev/null)
th_ticks=$(getconf CLK_TCK </dev/null 2>/dev/null)
th_mig=
th_boot=
read -r th_boot </proc/sys/kernel/random/boot_id

# Where the lock and the words of nvidia-smi lie: a directory that only this account can enter.
# A program that cannot be killed keeps its end of a pipe open for ever, but not of a file.
th_place() {
    for th_dir in "/run/user/$th_uid" "/tmp/tensorhive-$th_uid" "/dev/shm/tensorhive-$th_uid" \
        "$HOME/.tensorhive-probe"; do
        case $th_dir in
        /run/user/*) ;;
        *) [ -e "$th_dir" ] || mkdir "$th_dir" </dev/null 2>/dev/null ;;
        esac
        if [ -d "$th_dir" ] && [ ! -L "$th_dir" ] && [ -O "$th_dir" ] && [ -w "$th_dir" ]; then
            return 0
        fi
    done
    th_dir=
    return 1
}

th_limit() { # SECONDS PROGRAM ARGUMENT...
    th_seconds=$1
    shift
    if [ -n "$th_timeout" ]; then timeout -k 1 "$th_seconds" "$@"; else "$@"; fi
}

th_begin() { echo "@@$th_nonce begin $1"; }

th_end() { # SECTION STATUS; the blank line ends a last line that had no end
    echo
    echo "@@$th_nonce end $1 $2"
}

th_left() { # seconds that are left for nvidia-smi in this round, in th_rest
    read -r th_now th_rest </proc/uptime
    th_rest=$((th_start + 12 - ${th_now%%.*}))
    [ "$th_rest" -ge 2 ] || th_rest=2
}

th_smi() { # SECTION ARGUMENT...; after a program that hung, no other one is started
    th_section=$1
    shift
    th_end_status=$th_stuck
    if [ -z "$th_stuck" ]; then
        th_left
        if [ -n "$th_dir" ]; then
            (
                ulimit -f 8192
                th_limit "$th_rest" nvidia-smi "$@"
            ) </dev/null >"$th_files.$th_section" 2>&1
            th_end_status=$?
        else
            th_begin "$th_section"
            th_limit "$th_rest" nvidia-smi "$@" </dev/null 2>&1
            th_end_status=$?
            th_end "$th_section" "$th_end_status"
        fi
        case $th_end_status in 124 | 137) th_stuck=$th_end_status ;; esac
    fi
    th_done="$th_done $th_section $th_end_status"
}

th_has_mig() { # GPU instances exist, by the driver's own files or by what -L said last
    [ -n "$th_mig" ] && return 0
    for th_gi in /proc/driver/nvidia/capabilities/gpu*/mig/gi*; do
        [ -e "$th_gi" ] && return 0
    done
    return 1
}

th_list() {
    th_smi list -L
    th_mig=
    [ -n "$th_dir" ] && grep -q 'UUID: MIG-' "$th_files.list" </dev/null 2>/dev/null && th_mig=y
}

th_gpus() { # first? pmon?
    if [ -z "$1" ] && th_has_mig; then
        # The list names the instances and must be of the same moment as the rest.
        th_list
        th_smi xml -q -x
        return
    fi
    th_smi gpus --query-gpu=index,uuid,pci.bus_id,name,driver_version,fan.speed,memory.total,memory.used,memory.free,utilization.gpu,utilization.memory,temperature.gpu,power.draw,power.limit,pstate --format=csv,nounits
    [ -n "$1" ] && th_list
    if th_has_mig; then
        th_smi xml -q -x
    else
        th_smi processes --query-compute-apps=gpu_uuid,pid,used_memory,process_name --format=csv,noheader,nounits
    fi
    [ -n "$2" ] && th_smi pmon pmon -c 1 -s um
}

th_answer() { # SECTION PROGRAM ARGUMENT...
    th_section=$1
    shift
    th_begin "$th_section"
    th_limit 2 "$@" </dev/null 2>&1
    th_end "$th_section" $?
}

th_quick() { # what short programs say; awk below bounds it
    th_answer clock date +%s
    th_answer disks df -Pk / "${HOME:-/}"
    if [ -d /run/systemd/system ]; then th_answer loginctl loginctl list-sessions --no-legend; fi
    if [ -r /run/utmp ] || [ -r /var/run/utmp ]; then
        th_answer who who
    else
        th_begin who
        th_end who 74
    fi
    th_answer pts ls -ln /dev/pts
}

# Bounds what comes in, then reads the files of nvidia-smi and /proc without starting programs.
# The word travels in the environment, which other people cannot read, unlike arguments.
th_read() {
    TH_NONCE=$th_nonce TH_FILES=$th_files TH_DONE=$th_done TH_OWNERS=$th_status \
        TH_TICKS=$th_ticks TH_LIMIT=${th_timeout:+timeout -k 1 2} awk '
function begin(name) { print tag " begin " name }
function finish(name, status) { print ""; print tag " end " name " " status }

function want(pid) {
    gsub(/[^0-9]/, "", pid)
    if (pid == "" || length(pid) > 10 || pid in seen || pids >= 4096) return
    seen[pid] = 1
    order[++pids] = pid
}

function look(section, line,   cell) {
    if (section == "processes" && split(line, cell, ",") > 1 && cell[2] ~ /^ *[0-9]+ *$/)
        want(cell[2])
    else if (section == "pmon" && line !~ /^ *#/ && split(line, cell) > 2 && cell[2] ~ /^[0-9]+$/)
        want(cell[2])
    else if (section == "xml" && line ~ /^[ \t]*<pid>[0-9]+<\/pid>/)
        want(line)
}

# Long lists of the XML that nobody here reads; they would be most of it.
function is_dull(name) { return index(dull, " " name " ") > 0 }

function pass(section, status,   file, line, count, width, skip, name) {
    file = files "." section
    begin(section)
    width = section == "gpus" || section == "list" || section == "xml" ? 2048 : 512
    while ((getline line < file) > 0) {
        if (section == "xml") {
            sub(/^[ \t]+/, "", line)
            name = line
            gsub(/^<|>.*$/, "", name)
            if (skip != "") { if (name == "/" skip) skip = ""; continue }
            if (line ~ /^<[a-z0-9_]+>[ \t\r]*$/ && is_dull(name)) { skip = name; continue }
        }
        if (++count > 4090) { status = 76; break }
        print substr(line, 1, width)
        look(section, line)
    }
    close(file)
    finish(section, status)
}

function owner(pid,   dir, line, stat, lines, uid, login, cell, cgroup, special) {
    dir = "/proc/" pid
    while (lines < 20 && (getline line < (dir "/stat")) > 0)
        stat = stat (lines++ ? " " : "") line
    close(dir "/stat")
    if (stat == "") return
    uid = login = cgroup = "-"
    while ((getline line < (dir "/status")) > 0)
        if (line ~ /^Uid:/) { split(line, cell); uid = cell[3]; break }
    close(dir "/status")
    if ((getline line < (dir "/loginuid")) > 0) login = line
    close(dir "/loginuid")
    while ((getline line < (dir "/cgroup")) > 0) {
        if (line ~ /docker|containerd|crio|libpod|podman|kubepods|job_/) {
            if (!special || length(line) > length(cgroup)) cgroup = line
            special = 1
        } else if (!special && length(line) > length(cgroup)) cgroup = line
    }
    close(dir "/cgroup")
    gsub(/[ \t]/, "?", cgroup)
    if (uid ~ /^[0-9]+$/) uids[uid] = 1
    print pid, uid, login, substr(cgroup, 1, 1024), stat
}

function names(   line, cell, uid, missing, count, list, command, i) {
    begin("names")
    while ((getline line < "/etc/passwd") > 0) {
        split(line, cell, ":")
        if (cell[3] in uids) { print cell[3], cell[1]; delete uids[cell[3]] }
    }
    close("/etc/passwd")
    for (uid in uids) if (count < 200) { missing = missing " " uid; count++ }
    if (count) {
        command = ENVIRON["TH_LIMIT"] " getent passwd" missing " </dev/null 2>/dev/null"
        while ((command | getline line) > 0)
            if (split(line, cell, ":") > 3) { print cell[3], cell[1]; delete uids[cell[3]]; i++ }
        close(command)
    }
    finish("names", 0)
    if (!count || i) return
    for (i = 1; i <= pids && i <= 1000; i++) list = list (list == "" ? "" : ",") order[i]
    if (list == "") return
    # No getent, or it knows none: ps asks the same library.
    begin("ps")
    fflush()
    i = system(ENVIRON["TH_LIMIT"] " ps -o pid=,uid=,user:32= -p " list " </dev/null 2>/dev/null")
    finish("ps", i)
}

function first_line(name, file,   line) {
    if ((getline line < file) > 0 && line != "") print name, substr(line, 1, 128)
    close(file)
}

function host(   line, cores, cell) {
    begin("stat")
    while ((getline line < "/proc/stat") > 0 && line ~ /^cpu/)
        if (line ~ /^cpu /) print line; else cores++
    close("/proc/stat")
    print "cores", cores + 0
    finish("stat", 0)
    begin("meminfo")
    while ((getline line < "/proc/meminfo") > 0)
        if (line ~ /^(MemTotal|MemFree|MemAvailable|Buffers|Cached):/) print line
    close("/proc/meminfo")
    finish("meminfo", 0)
    begin("facts")
    first_line("loadavg", "/proc/loadavg")
    first_line("uptime", "/proc/uptime")
    first_line("boot_id", "/proc/sys/kernel/random/boot_id")
    first_line("machine_id", "/etc/machine-id")
    print "clock_ticks", ENVIRON["TH_TICKS"]
    while ((getline line < "/etc/login.defs") > 0)
        if (line ~ /^[ \t]*UID_MIN[ \t]/) { split(line, cell); print "uid_min", cell[2] }
    close("/etc/login.defs")
    finish("facts", 0)
}

BEGIN {
    tag = "@@" ENVIRON["TH_NONCE"]
    files = ENVIRON["TH_FILES"]
    dull = " supported_clocks accounted_processes ecc_errors retired_pages remapped_rows clocks" \
        " clocks_throttle_reasons clocks_event_reasons applications_clocks inforom_version" \
        " default_applications_clocks max_clocks max_customer_boost_clocks encoder_stats fbc_stats" \
        " device_attributes bar1_memory_usage ecc_mode ecc_error_count voltage pci fabric "
}

index($0, tag " begin ") == 1 { section = $3; rows = 0; print; next }
index($0, tag " end ") == 1 { if (rows > 300) $4 = 76; print; section = ""; next }
{
    if (++rows > 300) next
    print substr($0, 1, 1024)
    if (section == "pts" && $1 ~ /^c/ && $3 ~ /^[0-9]+$/) uids[$3] = 1
}

END {
    host()
    count = split(ENVIRON["TH_DONE"], done)
    if (files != "") for (i = 1; i < count; i += 2) pass(done[i], done[i + 1])
    begin("owners")
    for (i = 1; i <= pids; i++) owner(order[i])
    finish("owners", ENVIRON["TH_OWNERS"])
    names()
    if (files == "") exit
    for (i = 1; i <= pids && i <= 1000; i++) {
        shown = shown " " order[i]
        words = words " " files ".sep /proc/" order[i] "/cmdline"
    }
    print shown > (files ".args")
    print words > (files ".args")
    close(files ".args")
}'
}

# Each command line is preceded by a line with the word of this round, which no process can forge.
th_commands() {
    { read -r th_shown && read -r th_words; } <"$th_files.args" || return 0
    [ -n "$th_shown" ] || return 0
    printf '\n@@%s command\n' "$th_nonce" >"$th_files.sep"
    th_limit 2 head -q -c 512 $th_words </dev/null >"$th_files.commands" 2>/dev/null
    th_begin commands
    echo "$th_shown"
    tr '\000' ' ' <"$th_files.commands"
    th_end commands 0
}

th_round() { # first? pmon? skip?
    th_done=
    th_stuck=
    if [ -n "$3" ]; then
        th_stuck=69
    elif ! command -v nvidia-smi >/dev/null 2>&1; then
        th_stuck=127
    elif [ -n "$th_dir" ] && command -v flock >/dev/null 2>&1; then
        flock -n 9 </dev/null >/dev/null 2>&1 || th_stuck=75
    fi
    th_status=${th_stuck:-0}
    if [ -z "$th_stuck" ]; then
        th_gpus "$1" "$2"
        [ -n "$th_dir" ] || th_status=73
    else
        th_files=
        for th_section in gpus processes; do
            th_begin $th_section
            th_end $th_section "$th_status"
        done
    fi
    th_quick 9>&- | th_read 9>&-
    [ -z "$th_files" ] || th_commands 9>&-
}

th_probe() { # WORD [first] [pmon] [skip-gpu]
    th_nonce=$1
    case $th_nonce in '' | *[!A-Za-z0-9]*) return 64 ;; esac
    shift
    th_first= th_pmon= th_skip=
    for th_word in "$@"; do
        case $th_word in
        first) th_first=y ;;
        pmon) th_pmon=y ;;
        skip-gpu) th_skip=y ;;
        esac
    done
    read -r th_start th_rest </proc/uptime
    th_start=${th_start%%.*}
    th_files=
    if th_place; then
        th_files=$th_dir/th-$th_boot
        command -v flock >/dev/null 2>&1 || th_files=$th_files-$$
        { th_round "$th_first" "$th_pmon" "$th_skip"; } 9>>"$th_dir/th-$th_boot.lock"
    else
        th_round "$th_first" "$th_pmon" "$th_skip"
    fi
    echo "@@$th_nonce done"
}
