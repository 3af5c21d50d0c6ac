# One round of "nvidia-smi pmon". Reads the tables of GPUs and of processes; see csv.awk.
# Variables: sections = letters of -s (u, m), ids as given to nvidia-smi.
function chosen(    i) {
    if (ids == "") return 1
    for (i in id) if (id[i] == $(column["index"]) || id[i] == $(column["gpu_uuid"]) || id[i] == $(column["gpu_bus_id"])) return 1
    return 0
}
function alive(    file, line, found) {
    if ($(column["keep"]) == "1") return 1
    file = "/proc/" $(column["pid"]) "/stat"
    found = (getline line < file) > 0
    close(file)
    return found
}
function row(gpu, pid, type, sm, mem, other, fb, ccpm, name,    line) {
    line = sprintf("%5s %10s %5s", gpu, pid, type)
    if (usage) line = line sprintf("%7s%7s%7s%7s%7s%7s", sm, mem, other, other, other, other)
    if (memory) line = line sprintf("%7s%7s", fb, ccpm)
    return line sprintf("    %-15.15s", name)
}
BEGIN {
    FS = "\t"
    usage = index(sections, "u"); memory = index(sections, "m")
    split(ids, id, ",")
    line = "# gpu         pid   type"
    second = "# Idx           #    C/G"
    if (usage) { line = line "     sm    mem    enc    dec    jpg    ofa"; second = second "      %      %      %      %      %      %" }
    if (memory) { line = line "     fb   ccpm"; second = second "     MB     MB" }
    print line "    command "
    print second "    name "
}
FNR == 1 { split("", column); for (i = 1; i <= NF; i++) column[$i] = i }
FNR <= 3 || $1 == "!" { next }
NR == FNR { if (chosen()) order[++gpus] = $(column["index"]); next }
chosen() && alive() {
    gpu = $(column["index"])
    rows[gpu] = rows[gpu] row(gpu, $(column["pid"]), $(column["type"]), $(column["sm"]), "-", "-", $(column["used_memory"]), 0, $(column["command"])) "\n"
}
END {
    for (i = 1; i <= gpus; i++)
        printf "%s", order[i] in rows ? rows[order[i]] : row(order[i], "-", "-", "-", "-", "-", "-", "-", "-") "\n"
}
