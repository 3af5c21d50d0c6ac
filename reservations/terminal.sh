# Write a message to terminals: sh -s -- UID MESSAGE pts/3 tty1 …  One line of result for each.
# The owner of the device is looked at in the same command, since a number may be somebody else's
# by now; the write never waits for a full, stopped or closing terminal.
uid=$1; message=$2; shift 2
for line in "$@"; do
    case $line in pts/*) n=${line#pts/} ;; tty[0-9]*) n=${line#tty} ;; *) n= ;; esac
    case $n in '' | *[!0-9]*) echo "$line invalid"; continue ;; esac
    if [ ! -c "/dev/$line" ]; then echo "$line gone"; continue; fi
    if [ "$(stat -c %u "/dev/$line" </dev/null)" != "$uid" ]; then echo "$line other"; continue; fi
    if printf '%s' "$message" |
        timeout 3 dd of="/dev/$line" oflag=nonblock,noctty conv=notrunc,nocreat status=none 2>/dev/null
    then echo "$line sent"; else echo "$line failed"; fi
done
echo done
