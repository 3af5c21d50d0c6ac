# One CSV query. The table has the names of the fields, their headers and their units in its first
# three lines; what follows "keep" there is for this program alone. A line that begins with "!" holds a sentence that the driver says instead of a row.
# Variables: fields, format, ids as given to nvidia-smi; now = time stamp, table = gpus or apps.
function has(option) { return index("," format ",", "," option ",") > 0 }
function chosen(    i) {
    if (ids == "") return 1
    for (i in id) if (id[i] == $(column["index"]) || id[i] == $(column["gpu_uuid"]) || id[i] == $(column["gpu_bus_id"])) return 1
    return 0
}
function computes() { return table == "gpus" || $(column["type"]) ~ /C/ }
# The driver forgets a process that has ended; "keep" marks one that it still shows.
function alive(    file, line, found) {
    if (table == "gpus" || $(column["keep"]) == "1") return 1
    file = "/proc/" $(column["pid"]) "/stat"
    found = (getline line < file) > 0
    close(file)
    return found
}
BEGIN {
    FS = "\t"
    count = split(fields, want, /[ ]*,[ ]*/)
    split(ids, id, ",")
}
NR == 1 {
    for (i = 1; i <= NF; i++) column[$i] = i
    for (i = 1; i <= count; i++) if (!(want[i] in column) || "keep" in column && column[want[i]] >= column["keep"]) {
        printf "Field \"%s\" is not a valid field to query.\n\n", want[i]
        exit status = 2
    }
    next
}
NR == 2 {
    for (i = 1; i <= count; i++) line = line (i > 1 ? ", " : "") $(column[want[i]])
    if (!has("noheader")) print line
    next
}
NR == 3 {
    if (!has("nounits")) for (i = 1; i <= count; i++) if ($(column[want[i]]) != "") units[i] = " " $(column[want[i]])
    next
}
$1 == "!" { print $2; next }
chosen() && computes() && alive() {
    line = ""
    for (i = 1; i <= count; i++) {
        value = want[i] == "timestamp" ? now : $(column[want[i]])
        # "[N/A]" and its kin never carry a unit.
        line = line (i > 1 ? ", " : "") value (value ~ /^\[/ ? "" : units[i])
    }
    print line
    rows++
}
END {
    if (!status && ids != "" && table == "gpus" && !rows) { print "No devices were found"; exit 6 }
    exit status
}
