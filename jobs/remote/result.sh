# How attempts ended: sh -s -- DIRECTORY …   Prints "<DIRECTORY> <first line of rc>" for each.
for d in "$@"; do
    printf '%s ' "$d"; head -c 32 "$d/rc" 2>/dev/null </dev/null | head -n 1; echo
done
echo "done"
