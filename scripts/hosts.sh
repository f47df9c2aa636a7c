#!/usr/bin/env bash
# hosts.sh -- simulates several hosts on one machine: namespaces joined by a network with delay and
# limited rate.
#
#   hosts.sh up N [--delay 1ms] [--rate 1gbit]    creates hosts 0 to N-1
#   hosts.sh run HOST COMMAND...                  runs a command on a host, given by number or address
#   hosts.sh address HOST [4|6]                   10.77.0.<HOST+1> or fd00:77::<HOST+1>
#   hosts.sh down                                 removes them and kills all processes on them
#
# If the kernel has netem, veth pairs and a bridge join the hosts, and tc sets delay and rate.
# Without netem, a delay needs a small switch (test/hosts/slow_switch.cpp) and taps; without a
# delay, tc's tbf is enough. Needs root. WEFT_HOSTS names a set of hosts (default: weft), so that
# several can exist.
set -euo pipefail

prefix=${WEFT_HOSTS:-weft}
state=/run/$prefix-hosts
mtu=9000

die() {
  echo "hosts: $1" >&2
  exit "${2:-1}"
}

space() { echo "$prefix-host-$1"; }
in_space() { ip netns exec "$@"; }
spaces() { ip netns list 2>/dev/null | awk -v prefix="$prefix" '$1 ~ "^" prefix "-(host-[0-9]+|switch)$" { print $1 }'; }

has_netem() {
  ip netns add "$prefix-switch" 2>/dev/null || true
  in_space "$prefix-switch" tc qdisc add dev lo root netem delay 1ms 2>/dev/null &&
    in_space "$prefix-switch" tc qdisc del dev lo root
}

# in_microseconds 1.5ms -> 1500
in_microseconds() {
  awk -v text="$1" 'BEGIN {
    if (!match(text, /^[0-9]+(\.[0-9]+)?/)) exit 1
    unit = substr(text, RLENGTH + 1); factor["us"] = 1; factor["ms"] = 1e3; factor["s"] = 1e6
    if (!(unit in factor)) exit 1
    printf "%d", substr(text, 1, RLENGTH) * factor[unit] }' || die "not a time: $1 (as 1ms, 50us)"
}

# in_megabits 1gbit -> 1000
in_megabits() {
  awk -v text="$1" 'BEGIN {
    if (!match(text, /^[0-9]+(\.[0-9]+)?/)) exit 1
    unit = substr(text, RLENGTH + 1); factor["kbit"] = 1e-3; factor["mbit"] = 1; factor["gbit"] = 1e3
    if (!(unit in factor) || text + 0 == 0) exit 1
    printf "%g", substr(text, 1, RLENGTH) * factor[unit] }' || die "not a rate: $1 (as 1gbit, 100mbit)"
}

join_by_bridge() {
  local hosts=$1 delay=$2 rate=$3 netem=$4 h port
  ip netns add "$prefix-switch" 2>/dev/null || true
  in_space "$prefix-switch" ip link add bridge type bridge
  in_space "$prefix-switch" ip link set bridge up mtu $mtu
  for ((h = 0; h < hosts; h++)); do
    port=port$h
    in_space "$(space "$h")" ip link add eth0 mtu $mtu type veth peer name "$port" mtu $mtu netns "$prefix-switch"
    in_space "$prefix-switch" ip link set "$port" master bridge up
    # From a host: delay and rate. To a host: the rate only, for several senders to one host.
    if [[ $netem == yes ]]; then
      in_space "$(space "$h")" tc qdisc add dev eth0 root netem delay "${delay}us" rate "${rate}mbit" limit 100000
    else
      in_space "$(space "$h")" tc qdisc add dev eth0 root tbf rate "${rate}mbit" burst 128k latency 100ms
    fi
    in_space "$prefix-switch" tc qdisc add dev "$port" root tbf rate "${rate}mbit" burst 128k latency 100ms
  done
}

# Prints the path of the switch: from a build if it is up to date, else compiled here.
find_switch() {
  local here built
  here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
  for built in "${WEFT_SWITCH:-}" "$here"/build/*/slow_switch; do
    [[ -x $built && $built -nt $here/test/hosts/slow_switch.cpp ]] && { echo "$built"; return; }
  done
  built=$state/slow_switch
  c++ -std=c++20 -O2 -o "$built" "$here/test/hosts/slow_switch.cpp" || die "the switch does not compile"
  echo "$built"
}

join_by_switch() {
  local hosts=$1 delay=$2 rate=$3 program
  [[ -c /dev/net/tun ]] || die "the kernel has neither netem nor tun: no delay can be had" 77
  program=$(find_switch) || exit 1
  setsid "$program" "$prefix" "$hosts" "$delay" "$rate" >"$state/log" 2>&1 </dev/null &
  echo $! >"$state/switch.pid"
  for _ in {1..100}; do
    grep -qs ready "$state/log" && return
    kill -0 "$(<"$state/switch.pid")" 2>/dev/null || break
    sleep 0.05
  done
  die "the switch did not start: $(<"$state/log")"
}

up() {
  local hosts=$1 delay=0 rate=10000 netem=no h
  shift
  [[ $hosts =~ ^[0-9]+$ ]] && ((hosts >= 1 && hosts <= 64)) || die "the number of hosts is 1 to 64, not $hosts"
  while (($# > 0)); do
    (($# >= 2)) || die "$1 needs a value"
    case $1 in
      --delay) delay=$(in_microseconds "$2") ;;
      --rate) rate=$(in_megabits "$2") ;;
      *) die "unknown option $1" ;;
    esac
    shift 2
  done
  [[ -z $(spaces) ]] || die "hosts called $prefix are up already: hosts.sh down"
  mkdir -p "$state"
  trap down EXIT  # clean up after a failure
  for ((h = 0; h < hosts; h++)); do
    ip netns add "$(space "$h")" || die "network namespaces cannot be made" 77
  done
  has_netem && netem=yes
  if [[ $netem == yes || $delay == 0 ]]; then
    join_by_bridge "$hosts" "$delay" "$rate" $netem
  else
    join_by_switch "$hosts" "$delay" "$rate"
  fi
  for ((h = 0; h < hosts; h++)); do
    in_space "$(space "$h")" sh -c "
      ip link set lo up
      ip link set eth0 mtu $mtu up
      ip address add $(address "$h" 4)/24 dev eth0
      ip address add $(address "$h" 6)/64 dev eth0 nodad"
  done
  trap - EXIT
}

address() {
  if [[ ${2:-4} == 6 ]]; then echo "fd00:77::$(printf %x $(($1 + 1)))"; else echo "10.77.0.$(($1 + 1))"; fi
}

# Each host also has its own hostname, by which programs distinguish hosts.
run() {
  local host=$1
  shift
  [[ $host == 10.77.0.* ]] && host=$((${host##*.} - 1))
  exec ip netns exec "$(space "$host")" unshare --uts sh -c 'echo "$0" >/proc/sys/kernel/hostname && exec "$@"' \
    "$(space "$host")" "$@"
}

# Kills all processes in the namespaces; otherwise the namespaces would stay.
down() {
  local name pid
  for name in $(spaces); do
    for pid in $(ip netns pids "$name"); do kill -KILL "$pid" 2>/dev/null || true; done
  done
  if [[ -e $state/switch.pid ]]; then kill -TERM "$(<"$state/switch.pid")" 2>/dev/null || true; fi
  for name in $(spaces); do ip netns del "$name"; done
  rm -rf "$state"
}

command=${1:-}
case $command in
  up | run | down)
    ((EUID == 0)) || die "needs root: network namespaces" 77
    command -v ip >/dev/null && command -v tc >/dev/null || die "needs ip and tc (package iproute2)" 77
    ;;
esac
case $command in
  up) up "${@:2}" ;;
  run)
    (($# >= 3)) || die "usage: hosts.sh run HOST COMMAND..."
    run "${@:2}"
    ;;
  address) address "${@:2}" ;;
  down) down ;;
  *) sed -n '2,/^set/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 1 ;;
esac
