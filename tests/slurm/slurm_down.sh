#!/usr/bin/env bash
# Cancel all jobs of a SLURM that slurm_up.sh started, and end its daemons.
#   slurm_down.sh DIR
set -uo pipefail

base=$1
export SLURM_CONF=$base/etc/slurm.conf

# A daemon that ended may stay as a zombie where process 1 does not collect it, so kill -0 would not tell.
runs() {
  grep -qs '^State:[[:space:]]*[^Z]' "/proc/$1/status"
}

scancel --user="$(id -un)" --signal=KILL --full 2>/dev/null
scancel --user="$(id -un)" 2>/dev/null
for _ in $(seq 20); do
  [[ -z $(squeue --noheader 2>/dev/null) ]] && break
  sleep 0.25
done
for daemon in slurmd slurmctld munged; do
  pid=$(cat "$base/run/$daemon.pid" 2>/dev/null) || continue
  kill "$pid" 2>/dev/null
  for _ in $(seq 100); do
    runs "$pid" || break
    sleep 0.1
  done
  runs "$pid" && kill -KILL "$pid" 2>/dev/null
done
exit 0
