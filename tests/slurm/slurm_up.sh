#!/usr/bin/env bash
# A real SLURM of one node on this machine: munge, controller and node daemon, listening on loopback only.
#   slurm_up.sh DIR     DIR is absolute, and short, since a socket's path has at most 107 characters
# All daemons run as the caller, root or not; only the caller can send jobs.
# Then: export SLURM_CONF=DIR/etc/slurm.conf PATH=DIR/bin:$PATH. Needs Debian's slurm-wlm and munge (slurm-wlm 22.05).
# CPUS and MEMORY_MB are what the node claims; jobs are packed by them and not held to them.
set -euo pipefail

base=$1
export PATH=$PATH:/usr/sbin
host=$(hostname -s)

mkdir -p "$base"/{etc,state,spool,log,run,munge,bin}
chmod 755 "$base" "$base"/*
chmod 700 "$base/munge" # munge refuses a key that others can read
(umask 077 && head -c 1024 /dev/urandom >"$base/munge/munge.key")

# No accounting: sacct has nothing to say, so jobs have to stay in squeue (MinJobAge) for as long as a test lasts.
# Polling plugins fall back to sacct where MinJobAge is short.
cat >"$base/etc/slurm.conf" <<CONF
ClusterName=mragaudit
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=${CONTROLLER_PORT:-26817}
SlurmdPort=${NODE_PORT:-26818}
SrunPortRange=${SRUN_PORTS:-26900-26999}
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
AuthType=auth/munge
AuthInfo=socket=$base/run/munge.socket
CredType=cred/munge
SlurmUser=$(id -un)
SlurmdUser=$(id -un)
StateSaveLocation=$base/state
SlurmdSpoolDir=$base/spool
SlurmctldPidFile=$base/run/slurmctld.pid
SlurmdPidFile=$base/run/slurmd.pid
SlurmctldLogFile=$base/log/slurmctld.log
SlurmdLogFile=$base/log/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
MailProg=/bin/true
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SchedulerParameters=batch_sched_delay=0,sched_min_interval=0,bf_interval=2
ReturnToService=2
SlurmdParameters=config_overrides
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MinJobAge=3600
KillWait=2
GresTypes=gpu
NodeName=$host NodeAddr=127.0.0.1 CPUs=${CPUS:-32} RealMemory=${MEMORY_MB:-64000} Gres=gpu:fake:1 State=UNKNOWN
PartitionName=debug Nodes=$host Default=YES MaxTime=1440 State=UP
PartitionName=second Nodes=$host MaxTime=1440 State=UP
CONF

# A GPU to be scheduled; there is no device behind it.
echo "NodeName=$host Name=gpu Type=fake File=/dev/null" >"$base/etc/gres.conf"

# Snakemake's job step clears SLURM_CONF before it calls srun; this finds the configuration without touching /etc.
printf '#!/bin/sh\nSLURM_CONF=%s exec %s "$@"\n' "$base/etc/slurm.conf" "$(command -v srun)" >"$base/bin/srun"
chmod 755 "$base/bin/srun"

export SLURM_CONF=$base/etc/slurm.conf
munged --num-threads=1 --key-file="$base/munge/munge.key" --seed-file="$base/munge/seed" \
  --log-file="$base/munge/munged.log" --socket="$base/run/munge.socket" --pid-file="$base/run/munged.pid"
slurmctld -c -f "$SLURM_CONF"
slurmd -c -f "$SLURM_CONF"

for _ in $(seq 60); do
  [[ $(sinfo --noheader --partition=debug --format=%T 2>/dev/null) == idle ]] && exit 0
  sleep 0.5
done
echo "the node did not become idle" >&2
sinfo --list-reasons >&2 || true
tail -n 5 "$base"/log/*.log >&2
exit 1
