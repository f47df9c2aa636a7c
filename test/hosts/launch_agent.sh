#!/usr/bin/env bash
# launch_agent.sh [OPTION...] HOST COMMAND... -- replaces ssh for mpirun and mpiexec.
while [[ $1 == -* ]]; do shift; done
host=$1
shift
exec "$(dirname "$0")/../../scripts/hosts.sh" run "$host" sh -c "$*"
