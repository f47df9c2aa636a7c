#!/bin/sh
# Fault injection for training jobs.
#
#   bench/faults_of_jobs.sh build/release/weft [ROUNDS]
#
# Two ranks train on digits. They are killed, terminated, or given different data, no data, a full disk
# or too little time. Each time the job must report the error, or end with results bitwise equal to those
# of an undisturbed run. Prints one line per case.
weft=$(realpath "$1")
rounds=${2:-5}
root=$(dirname "$(dirname "$(realpath "$0")")")
work=$(mktemp -d)
export WEFT_HOSTS=faults
trap 'umount "$work/small" 2>/dev/null; "$root/scripts/hosts.sh" down 2>/dev/null; rm -rf "$work"' EXIT
cd "$work" || exit 2
export weft WEFT_TIMEOUT='20 s'
mkdir h0 h1
broken=0

# judge NAME CONDITION...
judge() {
  name=$1
  shift
  if "$@"; then echo "$name: ok"; else
    echo "$name: BROKEN"
    sed 's/^/    /' out | tail -n 12
    broken=1
  fi
}
script() { # STEPS SETTINGS [DATA]
  cat >job.weft <<END
TRAIN digits_mlp ON LOCAL 2 FROM '${3:-$root/examples/digits.csv.gz}' STEPS $1
WITH (distribution = 'rank=2: slice b', threads = 2${2:+, $2});
END
}
launch() { "$weft" launch -n 2 "$@" sh rank.sh >out 2>&1; }
says() { [ "$(grep -c "$2" out)" = "$1" ]; }
lines() { if [ -f "$1" ]; then wc -l <"$1"; else echo 0; fi; }
# The elements of a checkpoint, without its header.
elements() { tail -c +$((9 + $(od -An -N8 -tu8 "$1"))) "$1" | cksum; }
ended_or_done() { [ "$1" = 4 ] || [ "$1" = 0 ]; }
same_bits() { [ -s "$1" ] && [ "$(elements "$1")" = "$(elements "$2")" ]; }

echo 'cd h$RANK; echo $$ >pid; exec $weft run ../job.weft' >rank.sh
script 300 "checkpoint = '../whole'"
launch
judge 'nobody disturbs it' [ -s whole ]

gunzip -c "$root/examples/digits.csv.gz" >h0/data.csv
head -n 1000 h0/data.csv >h1/data.csv
script 300 '' data.csv
launch
judge 'other data on one rank' says 2 'rank 1 has other data than rank 0'
rm h1/data.csv
launch
judge 'no data on one rank' says 1 'rank 1: cannot read'

for round in $(seq "$rounds"); do
  rm -f kept log.csv
  script 300 "checkpoint = '../kept', checkpoint_every = 20, log = '../log.csv'"
  at=$((round * 250 / rounds))
  cat >rank.sh <<END
cd h\$RANK
if [ \$RANK = $((round % 2)) ] && [ -z "\$WEFT_RESTARTS" ]; then
  ( while [ ! -f ../log.csv ] || [ \$(wc -l <../log.csv) -lt $at ]; do sleep 0.005; done; kill -9 \$\$ ) &
fi
exec \$weft run ../job.weft
END
  launch --restarts 3
  judge "a rank killed after step $at, started again" same_bits kept whole
  rm -f kept log.csv
  launch --restarts 3 --least 1
  judge "a rank killed after step $at, left out" says 1 ' to 300: loss'
done

echo 'cd h$RANK; echo $$ >pid; exec $weft run ../job.weft' >rank.sh
for round in $(seq "$rounds"); do
  rm -f kept
  script 300 "checkpoint = '../kept', checkpoint_every = 10, resume = true"
  (
    while [ ! -s kept ]; do sleep 0.005; done
    kill -TERM "$(cat h$((round % 2))/pid)" 2>/dev/null
  ) &
  launch
  code=$?
  wait
  judge 'SIGTERM to one rank: all stop' ended_or_done $code
  launch
  judge 'and go on' same_bits kept whole
done

rm -f kept
script 100000000 "checkpoint = '../kept', wall_time = '0.5s'"
launch
judge 'wall_time is up' [ $? = 4 ]

mkdir small
if mount -t tmpfs -o size=256k none small 2>/dev/null; then
  script 3000 "checkpoint = '../longer'"
  launch
  script 3000 "checkpoint = '../small/kept', checkpoint_every = 10, log = '../log.csv'"
  rm -f log.csv
  (
    while [ "$(lines log.csv)" -lt 100 ]; do sleep 0.005; done
    head -c 1000000 /dev/zero >small/stuff 2>/dev/null
    while [ "$(lines log.csv)" -lt 1000 ]; do sleep 0.005; done
    rm small/stuff
  ) &
  launch
  wait
  judge 'a full disk on the way' same_bits small/kept longer
  judge 'it was reported' says 1 'is not saved; training continues'
else
  echo 'a full disk on the way: skipped, mounting needs root'
fi

# Ranks started by this process, without checkpoints in files: in-memory copies must suffice.
script 3000 "checkpoint = 'undisturbed'"
"$weft" run job.weft >out 2>&1
for round in $(seq "$rounds"); do
  rm -f kept log.csv
  script 3000 "in_memory_checkpoint_every = 5, max_restarts = 3, log = 'log.csv'"
  echo "SAVE digits_mlp TO 'kept';" >>job.weft
  "$weft" run job.weft >out 2>&1 &
  started=$!
  while [ "$(lines log.csv)" -lt $((round * 250 / rounds)) ]; do sleep 0.005; done
  kill -9 $(cat /proc/$started/task/$started/children) 2>/dev/null
  wait $started
  judge 'a rank of LOCAL killed, the others remember' same_bits kept undisturbed
  judge 'it was reported' says 1 'which the surviving ranks had in memory'
done

# After some steps, the bandwidth between the ranks drops sharply. Checks take at most a tenth of the time,
# so the next one may be a few seconds away.
cat >slow.sh <<'END'
ip link set lo up
"$weft" run job.weft >out 2>&1 &
while [ ! -f log.csv ] || [ "$(wc -l <log.csv)" -lt 100 ]; do sleep 0.005; done
tc qdisc replace dev lo root tbf rate 5mbit burst 64kb latency 400ms
wait
END
if unshare -n sh -c 'ip link set lo up && tc qdisc replace dev lo root tbf rate 5mbit burst 64kb latency 1s' 2>/dev/null; then
  rm -f log.csv
  cat >job.weft <<END
TRAIN digits_mlp ON LOCAL 2 FROM '$root/examples/digits.csv.gz' STEPS 3000
WITH (b = 256, f = 512, transport = tcp, threads = 2, replan_every = 20, log = 'log.csv');
END
  unshare -n sh slow.sh
  judge 'a slow link: another plan' grep -q 'switched to another plan' out
  judge 'and to its end' says 1 ' to 3,000: loss'
else
  echo 'a slow link: skipped, it needs root and tc with tbf'
fi

# Three hosts, of which one is disconnected. Both sides must end in time and name the ranks they lost.
hosts=$root/scripts/hosts.sh
cat >host.sh <<'END'
cd h$RANK && exec "$weft" run ../job.weft >out 2>&1
END
if "$hosts" up 3 2>out; then
  mkdir -p h2
  rm -f kept log.csv
  script 100000000 "checkpoint = '../kept', checkpoint_every = 50, log = '../log.csv'"
  sed -i 's/LOCAL 2/JOB/; s/rank=2/host=3/; s/threads = 2/threads = 1/' job.weft
  export MASTER_ADDR=10.77.0.1 MASTER_PORT=29517 WORLD_SIZE=3 LOCAL_WORLD_SIZE=1 LOCAL_RANK=0 WEFT_TIMEOUT='5 s'
  for rank in 0 1 2; do RANK=$rank "$hosts" run $rank timeout 120 sh host.sh & done
  for _ in $(seq 6000); do [ "$(lines log.csv)" -ge 100 ] && break; sleep 0.01; done
  ip -n faults-switch link set port2 down
  wait
  cat h0/out h1/out >out
  judge 'a partition: the larger part names the rank it lost' says 2 'rank 2'
  cat h2/out >out
  judge 'a partition: the lone rank ends too' grep -q 'error.*no heartbeat' out
  judge 'what was saved can be read' [ -s kept ]
  "$hosts" down
  unset MASTER_ADDR MASTER_PORT WORLD_SIZE LOCAL_WORLD_SIZE LOCAL_RANK
  export WEFT_TIMEOUT='20 s'
else
  echo "a partition: skipped, $(cat out)"
fi

# A container with less memory than the machine: reported before the first step, not killed during it.
group=
for folder in /sys/fs/cgroup/memory/weft-faults-$$ /sys/fs/cgroup/weft-faults-$$; do
  mkdir "$folder" 2>/dev/null || continue
  for limit in memory.limit_in_bytes memory.max; do
    [ -f "$folder/$limit" ] && echo 150000000 >"$folder/$limit" && group=$folder
  done
  [ "$group" ] && break
  rmdir "$folder"
done
if [ "$group" ]; then
  echo "TRAIN char_gpt FROM '$root/README.md' STEPS 2 WITH (b = 64, s = 256, layers = 6);" >job.weft
  sh -c 'echo $$ >"$0/cgroup.procs" && exec "$weft" run job.weft' "$group" >out 2>&1
  judge 'a quota of memory: reported before the step' [ $? != 137 ]
  judge 'and what it is' grep -q 'error.*needs .* the machine has .* available' out
  rmdir "$group"
else
  echo 'a quota of memory: skipped, no cgroup can be made here'
fi

# Launchers other than weft launch.
script 300 "checkpoint = 'kept'"
for mpirun in mpirun.openmpi mpirun.mpich; do
  command -v $mpirun >/dev/null || { echo "$mpirun: not here"; continue; }
  rm -f kept
  as_root=
  [ $mpirun = mpirun.openmpi ] && as_root='--allow-run-as-root --oversubscribe'
  $mpirun $as_root -n 2 "$weft" run job.weft >out 2>&1
  judge "$mpirun" same_bits kept whole
done
rm -f kept
export MASTER_ADDR=127.0.0.1 MASTER_PORT=29517 WORLD_SIZE=2 LOCAL_WORLD_SIZE=2
RANK=1 LOCAL_RANK=1 "$weft" run job.weft >other 2>&1 &
RANK=0 LOCAL_RANK=0 "$weft" run job.weft >out 2>&1
wait
judge "torchrun's variables" same_bits kept whole
exit $broken
