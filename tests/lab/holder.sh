#!/bin/sh
# First process of a lab host, started by unshare(1) in a mount and a UTS namespace of its own.
# Arguments: host name, the host's directory, directory for /home ("" = the host's own), 1 = utmp.
# It furnishes the host, says "ready" and lives until its standard input ends, which happens
# however the lab ends; then it takes with it whatever still runs on the host.
set -eu
name=$1 dir=$2 homes=$3 utmp=$4

# What follows would ruin the machine itself.
if [ "$(readlink /proc/self/ns/mnt)" = "$(readlink "/proc/$PPID/ns/mnt")" ]; then
    echo "no mount namespace of its own" >&2
    exit 1
fi

screen_mode=$(stat -c %a /run/screen 2>/dev/null || echo 1777)
printf '%s\n' "$name" > /proc/sys/kernel/hostname

mount -t tmpfs -o mode=755 tmpfs /run
mkdir -m 755 /run/sshd /run/user
mkdir -m 1777 /run/lock
install -d -m "$screen_mode" -g utmp /run/screen
[ "$utmp" = 0 ] || install -m 664 -g utmp /dev/null /run/utmp

# Terminals are numbered per host, and 0620 with group tty as on a usual machine.
mount -t devpts -o newinstance,mode=620,ptmxmode=666,gid="$(getent group tty | cut -d: -f3)" \
    devpts /dev/pts
mount -t tmpfs -o mode=1777 tmpfs /dev/shm
mount -t tmpfs -o mode=755 tmpfs /var/log

# The lab's directory lies below one of those that become the host's own.
mkdir /run/lab
mount --bind "$dir" /run/lab
if [ -n "$homes" ]; then mount --bind "$homes" /home; else mount -t tmpfs -o mode=755 tmpfs /home; fi
mount -t tmpfs -o mode=1777 tmpfs /var/tmp
mount -t tmpfs -o mode=1777 tmpfs /tmp
mkdir -p "$dir"
mount --move /run/lab "$dir"
rmdir /run/lab

mount --bind "$dir/etc/machine-id" /etc/machine-id
mount --bind "$dir/etc/group" /etc/group
mount --bind "$dir/etc/boot_id" /proc/sys/kernel/random/boot_id

echo ready
read -r _ || :
here=$(readlink /proc/self/ns/mnt)
for process in /proc/[0-9]*; do
    pid=${process#/proc/}
    [ "$pid" != $$ ] || continue
    [ "$(readlink "$process/ns/mnt" 2>/dev/null)" != "$here" ] || kill -KILL "$pid" 2>/dev/null || :
done
