# A piece of a log: sh -s -- LOG OFFSET LIMIT.  First line "size SIZE OFFSET", then the bytes.
# A negative offset counts from the end.
log=$1; offset=$2; limit=$3
[ -f "$log" ] || { echo missing; exit 0; }
size=$(stat -c %s "$log" </dev/null)
[ "$offset" -lt 0 ] && offset=$((size + offset))
[ "$offset" -lt 0 ] && offset=0
echo "size $size $offset"
tail -c "+$((offset + 1))" "$log" 2>/dev/null </dev/null | head -c "$limit"
