#!/bin/bash
# In place of Slurm, on the machines of hosts.sh: acts as sbatch, srun, scontrol or scancel, by the name it is called with.
# A job has the nodes h1, h2 and so on, and its batch file runs on h1. HOSTS_FOLDER/slurm/JOB holds the job's script, pid and code.
# As in Slurm, a task that ends ends its step, and a step that ends ends all of its processes.
#   HOSTS_FOLDER/no-token-on-NODE, where it is there, has NODE look for Ray's token where none is
set -euo pipefail
kept=$HOSTS_FOLDER/slurm
on() { ssh -F "$HOSTS_FOLDER/client/home/.ssh/config" "$@"; }

case ${0##*/} in
  sbatch)
    mkdir -p "$kept"
    job=$(($(find "$kept" -mindepth 1 -maxdepth 1 | wc -l) + 1))
    mkdir "$kept/$job"
    cat > "$kept/$job/script"
    export SLURM_JOB_ID=$job SLURMD_NODENAME=h1 SLURM_JOB_NODELIST=all
    SLURM_JOB_NUM_NODES=$(sed -n 's/^#SBATCH --nodes=//p' "$kept/$job/script")
    output=$(sed -n 's/^#SBATCH --output=//p' "$kept/$job/script")
    export SLURM_JOB_NUM_NODES
    declare -px > "$kept/$job/environment"
    command="source $kept/$job/environment; cd $PWD; echo \$\$ > $kept/$job/pid; exec bash $kept/$job/script"
    (
      code=0
      on h1 "exec bash -c '$command'" < /dev/null > "${output/\%j/$job}" 2>&1 || code=$?
      echo "$code" > "$kept/$job/code"
    ) < /dev/null > /dev/null 2>&1 &
    echo "$job"
    ;;
  scontrol) # show hostnames LIST
    for i in $(seq "$SLURM_JOB_NUM_NODES"); do echo "h$i"; done
    ;;
  scancel) # --batch --signal=TERM JOB
    [ "$1 $2" = "--batch --signal=TERM" ]
    on h1 "kill -TERM $(cat "$kept/$3/pid")"
    ;;
  srun)
    while [[ $1 == --* ]]; do
      [[ $1 == --nodelist=* ]] && nodes=${1#--nodelist=}
      shift
    done
    export SLURM_CPUS_ON_NODE=1
    step=$kept/$SLURM_JOB_ID/step.$$
    declare -px > "$step"
    tasks=()
    for node in ${nodes//,/ }; do
      broken=''
      [ ! -e "$HOSTS_FOLDER/no-token-on-$node" ] || broken='export RAY_AUTH_TOKEN_PATH=/nowhere;'
      there="source $step; $broken export SLURMD_NODENAME=$node; cd $PWD; exec python -m tests.cluster.slurm_step $step.$node ${*@Q}"
      on "$node" "exec bash -c ${there@Q}" < /dev/null &
      tasks+=("$!")
    done
    ended=''
    trap 'ended=143' TERM
    while [ -z "$ended" ]; do
      for task in "${tasks[@]}"; do
        kill -0 "$task" 2> /dev/null || { ended=0; wait "$task" || ended=$?; }
      done
      sleep .5 &
      wait "$!" || true
    done
    for node in ${nodes//,/ }; do on "$node" "kill \$(cat $step.$node)" 2> /dev/null || true; done
    wait
    exit "$ended"
    ;;
esac
