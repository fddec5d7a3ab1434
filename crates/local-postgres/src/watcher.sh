# Stops the cluster once the owner is gone. $0: pg_ctl, $1: the cluster, $2: the limit of a stop in seconds,
# the rest: temporary folders to remove. stdin: a pipe from the owner, stdout: a lock held until the end, stderr: the log.

# A service manager may end all processes at once: this one still has its duty then.
trap '' HUP INT TERM
pg_ctl=$0 cluster=$1 limit=$2
shift 2

# The owner writes one line before it starts the server, and the pipe closes when the owner ends.
started=
while read -r _; do started=yes; done

# Several times, since the server of an owner killed at once may not have written its pid file yet.
[ -z "$started" ] || for attempt in 1 2 3 4 5; do
    "$pg_ctl" stop -D "$cluster" -m fast -w -t "$limit" >&2 && break
    "$pg_ctl" stop -D "$cluster" -m immediate -w -t 10 >&2 && break
    sleep 1
done

# Several times, since an orphaned initdb may still be writing there.
[ $# -eq 0 ] || for attempt in 1 2 3 4 5; do
    rm -rf -- "$@" && break
    sleep 1
done
