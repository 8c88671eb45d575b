#!/bin/bash
# The sweep {{ sweep }} as a job of Slurm. Sending this file again, by `sbatch`, continues the sweep.
# The job stops in order before its time ends, and by `scancel --batch --signal=TERM JOB`. Needs bash 4.4.
{%- for name, value in options.items() %}
#SBATCH --{{ name }}{% if value %}={{ value }}{% endif %}
{%- endfor %}
set -euo pipefail

cd -- {{ folder }}
export PATH={{ programs }}:"$PATH"
{%- for name, value in variables.items() %}
export {{ name }}={{ value }}
{%- endfor %}
{%- for name in withheld %}
: "${{ '{' }}{{ name }}:?holds a secret, so this file does not: export it before sbatch{{ '}' }}"
{%- endfor %}
export RAY_AUTH_MODE=token RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S=0
# Nothing goes to Ray's makers, and Ray's metric pages, which ask for no token, are closed: a port of -1 cannot be opened.
export RAY_USAGE_STATS_ENABLED=0 RAY_USAGE_STATS_REPORT_URL=http://127.0.0.1:9
export RAY_enable_metrics_collection=0 DASHBOARD_METRIC_PORT=-1 AUTOSCALER_METRIC_PORT=-1
unset RAY_AUTH_TOKEN RAY_ADDRESS

why=''  # the reason to stop, once there is one
steps=() places=() private=''
trap 'why="Slurm asks the job to stop"' TERM
trap clean_up EXIT

fail() {
  echo "ponderay: $1." >&2
  exit 1
}

is_running() { kill -0 "$1" 2> /dev/null; }

# Ends Ray on all nodes: Slurm ends every process of a step.
clean_up() {
  trap '' TERM
  kill "${steps[@]}" 2> /dev/null || true
  wait
  [ -z "$private" ] || rm -rf "$private"
}

# On a node: Ray with a folder of its own; the end of what it says is shown where it fails.
on_node=$(cat << 'END'
ulimit -n "$(ulimit -Hn)"
folder=$(mktemp -d "/tmp/ray-$SLURM_JOB_ID-XXXXXX")
trap 'rm -rf "$folder"' EXIT
stopped=''
ray start "$@" --num-cpus="${SLURM_CPUS_ON_NODE:?}" --object-store-memory=500000000 --temp-dir="$folder" \
  --log-color=false --block > "$folder/start.log" 2>&1 < /dev/null &
ray=$!
trap 'stopped=yes; kill "$ray"' TERM
wait "$ray"; code=$?
while kill -0 "$ray" 2> /dev/null; do wait "$ray"; code=$?; done
[ "$stopped" ] || { echo "ponderay: \`ray start\` on $SLURMD_NODENAME has ended with code $code:"; tail -n 40 "$folder/start.log"; } >&2
exit "$code"
END
)

# start_ray NUMBER NODES OPTION...: as one step of the job
start_ray() {
  srun --nodes="$1" --ntasks="$1" --nodelist="$2" --export=ALL --cpu-bind=none --kill-on-bad-exit=1 \
    bash -c "$on_node" on_node "${@:3}" &
  steps+=("$!") places+=("$2")
}

# beside_ray COMMAND...: runs it while Ray runs on all nodes, and ends with its exit code where that is not 0
beside_ray() {
  local asked='' code=0 i
  "$@" &
  local main=$!
  while is_running "$main"; do
    for i in "${!steps[@]}"; do
      is_running "${steps[i]}" || why=${why:-"Ray has ended on ${places[i]}, or never started"}
    done
    if [ "$why" ] && [ -z "$asked" ]; then
      echo "ponderay: $why. Finished work is kept; sending the job again continues from there." >&2
      asked=$SECONDS
      kill -TERM "$main" 2> /dev/null || true
    elif [ "$asked" ] && [ $((SECONDS - asked)) -gt {{ stop_s }} ]; then
      kill -KILL "$main" 2> /dev/null || true
    fi
    sleep 1 &
    wait "$!" || true  # a signal ends it
  done
  wait "$main" || code=$?
  [ -z "$asked" ] || [ "$code" -lt 128 ] || code=1
  [ "$code" = 0 ] || exit "$code"
}

# gather NODE...: returns once all of them belong to the cluster
gather() { beside_ray python -m orchestrator.cluster.gathering "$address" {{ join_s }} "$@"; }

head=$SLURMD_NODENAME  # where this file runs, and with it the driver
names=$(scontrol show hostnames "$SLURM_JOB_NODELIST")
others=()
for name in $names; do
  [ "$name" = "$head" ] || others+=("$name")
done
own_address='import socket, sys
probe = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
probe.connect((sys.argv[1], 9))
print(probe.getsockname()[0])'
address=$(python -c "$own_address" "${others[0]:-localhost}" 2> /dev/null) || fail "$head knows no way to ${others[*]}"
address=$address:{{ port }}

mkdir -p "$PONDERAY_RUNS"
private=$(mktemp -d "$PONDERAY_RUNS/.slurm-$SLURM_JOB_ID-XXXXXX")
(umask 077 && python -c 'import secrets; print(secrets.token_hex(32))' > "$private/auth_token")
export RAY_AUTH_TOKEN_PATH=$private/auth_token

start_ray 1 "$head" --head --node-ip-address="${address%:*}" --port={{ port }} --include-dashboard=false
gather "$head"
if [ "$SLURM_JOB_NUM_NODES" -gt 1 ]; then
  start_ray "$((SLURM_JOB_NUM_NODES - 1))" "$(IFS=,; echo "${others[*]}")" --address="$address"
  gather "$head" "${others[@]}"
fi
beside_ray env RAY_ADDRESS="$address" {{ entrypoint }}
