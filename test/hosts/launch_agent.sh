#!/usr/bin/env bash
# launch_agent.sh [OPTION...] HOST COMMAND... -- what mpirun and mpiexec call instead of ssh.
while [[ $1 == -* ]]; do shift; done
host=$1
shift
exec "$(dirname "$0")/../../scripts/hosts.sh" run "$host" sh -c "$*"
