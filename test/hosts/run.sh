#!/usr/bin/env bash
# run.sh PROGRAMS [--measure] -- collectives across 4 hosts of 2 ranks each: over TCP, over shared
# memory within hosts and TCP between them, and over MPI.
#
# PROGRAMS is the folder of all_reduce_check, mpi_check and the MPI plugins. Creates hosts with 1 ms
# delay and 1 Gbit/s (scripts/hosts.sh) and removes them at the end. Exits with 77 without root or
# network namespaces.
set -uo pipefail
cd "$(dirname "$0")/../.."
programs=$(realpath "$1")
measure=()
hosts=4 local_ranks=2 delay=1000 rate=1000
[[ ${2:-} == --measure ]] && measure=("$hosts" "$delay" "$rate")

export WEFT_HOSTS=wefttest$$ WEFT_SWITCH=$programs/slow_switch
WEFT_JOB_SECRET=$(head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n')
export WEFT_JOB_SECRET
pids=()
clean() {
  ((${#pids[@]} == 0)) || kill "${pids[@]}" 2>/dev/null
  scripts/hosts.sh down
}
trap clean EXIT
trap 'exit 1' INT TERM
scripts/hosts.sh up $hosts --delay ${delay}us --rate ${rate}mbit
code=$?
if ((code != 0)); then
  trap - EXIT
  exit $code
fi

failed=0
verdict() {  # NAME CODE
  if (($2 == 0)); then echo "ok: $1"; else echo "FAILED ($2): $1" && failed=1; fi
}
limit=500

# Starts ranks with environment variables only, as torchrun does.
by_environment() {  # TRANSPORT ADDRESS-FAMILY
  local rank=0 h r code=0
  pids=()
  for ((h = 0; h < hosts; h++)); do
    for ((r = 0; r < local_ranks; r++)); do
      RANK=$rank WORLD_SIZE=$((hosts * local_ranks)) MASTER_ADDR=$(scripts/hosts.sh address 0 "$2") MASTER_PORT=4711 \
        timeout -k 1 $limit scripts/hosts.sh run $h "$programs/all_reduce_check" "$1" "${measure[@]}" </dev/null &
      pids+=($!)
      rank=$((rank + 1))
    done
  done
  for pid in "${pids[@]}"; do wait "$pid" || code=$?; done
  pids=()
  return $code
}
by_environment automatic 4
verdict "mixed, $hosts hosts x $local_ranks ranks" $?
by_environment tcp 4
verdict "tcp, IPv4, $hosts hosts x $local_ranks ranks" $?
if ((${#measure[@]} == 0)); then
  by_environment tcp 6
  verdict "tcp, IPv6, $hosts hosts x $local_ranks ranks" $?
fi

agent=$PWD/test/hosts/launch_agent.sh
list=$(for ((h = 0; h < hosts; h++)); do echo "$(scripts/hosts.sh address $h):$local_ranks"; done | paste -sd,)

open_mpi() {
  timeout -k 1 $limit scripts/hosts.sh run 0 mpirun.openmpi --allow-run-as-root --oversubscribe \
    --mca plm_rsh_agent "$agent" --mca pml ob1 --mca btl vader,tcp,self --mca btl_tcp_if_include eth0 \
    --mca oob_tcp_if_include eth0 --host "$list" -n $((hosts * local_ranks)) -x WEFT_HOSTS "$@" </dev/null
}

# MPICH before 4.2 may hang in MPI_Finalize over UCX's TCP, in any program (pmodels/mpich#6596). So
# the exit code does not matter once the program has printed its last line.
mpich() {  # LAST-WORD COMMAND...
  local word=$1 log code
  shift
  log=$(mktemp)
  UCX_TLS=tcp,self UCX_NET_DEVICES=eth0 timeout -k 1 $limit scripts/hosts.sh run 0 mpiexec.mpich \
    -launcher ssh -launcher-exec "$agent" -iface eth0 -hosts "$list" -n $((hosts * local_ranks)) "$@" \
    </dev/null >"$log" 2>&1 &
  pids=($!)
  for ((code = 1; code != 0; )); do
    kill -0 "${pids[0]}" 2>/dev/null || break
    grep -q "$word" "$log" && sleep 2 && code=0
    sleep 0.2
  done
  grep -q "$word" "$log" && code=0
  kill "${pids[0]}" 2>/dev/null
  wait "${pids[0]}" 2>/dev/null
  pids=()
  grep -vE "^(=|\[(proxy|mpiexec))" "$log"
  rm -f "$log"
  return $code
}

if command -v mpirun.openmpi >/dev/null && [[ -e $programs/weft_mpi_openmpi.so ]]; then
  open_mpi "$programs/mpi_check"
  verdict "Open MPI: the transport" $?
  open_mpi "$programs/all_reduce_check" mpi "${measure[@]}"
  verdict "Open MPI: collectives" $?
else
  echo "skipped: Open MPI is not installed"
fi
if command -v mpiexec.mpich >/dev/null && [[ -e $programs/weft_mpi_mpich.so ]]; then
  mpich "all is well" "$programs/mpi_check"
  verdict "MPICH: the transport" $?
  mpich "every result is right" "$programs/all_reduce_check" mpi
  verdict "MPICH: collectives" $?
else
  echo "skipped: MPICH is not installed"
fi
exit $failed
