# What a host offers beyond the probe: asked when an administrator checks it. POSIX sh.
LC_ALL=C; export LC_ALL
PATH=$PATH:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin
echo "groups $(id -Gn </dev/null 2>/dev/null)"
for program in nvidia-smi timeout flock awk ps who loginctl screen dd stat; do
    if command -v "$program" </dev/null >/dev/null 2>&1; then
        echo "has $program"
    else
        echo "lacks $program"
    fi
done
if [ -r /proc/1/stat ]; then echo "sees others"; else echo "sees own"; fi
if [ -d /run/systemd/system ]; then
    echo "systemd yes"
    kills=$(grep -hi '^[[:space:]]*KillUserProcesses[[:space:]]*=' /etc/systemd/logind.conf \
        /etc/systemd/logind.conf.d/*.conf </dev/null 2>/dev/null | tail -n 1)
    echo "logind ${kills##*=}"
else
    echo "systemd no"
fi
echo "done"
