# A piece of a log: sh -s -- MARK LOG OFFSET LIMIT
# Prints MARK and "missing", or MARK, the size and the offset on a line and then the bytes.
# A negative offset counts from the end.
mark=$1; log=$2; offset=$3; limit=$4
[ -f "$log" ] && [ -r "$log" ] || { echo "$mark missing"; exit 0; }
size=$(stat -L -c %s "$log" </dev/null)
[ "$offset" -ge 0 ] || offset=$((size + offset))
[ "$offset" -ge 0 ] || offset=0
echo "$mark $size $offset"
tail -c "+$((offset + 1))" "$log" 2>/dev/null </dev/null | head -c "$limit"
