#!/bin/sh
# Runs a command ahead of everything else on this machine, so far as that is permitted:
#
#     bench/quiet.sh bench/target/release/tidegate-bench-inproc
#
# Linux shares cores out between sessions first ("autogroups"), and only then by niceness within
# one: so the command gets a session of its own, and that session the priority.
setsid sh -c '
    echo -19 > /proc/self/autogroup || echo "quiet: not permitted, runs as everybody else" >&2
    exec "$@"
' quiet "$@" &
child=$!
# A session of its own does not hear Ctrl-C.
trap 'kill -TERM -- "-$child"' INT TERM
wait "$child"
