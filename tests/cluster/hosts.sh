#!/bin/bash
# hosts.sh CMD... : runs CMD beside NUM_HOSTS (3) machines of its own, 10.77.0.2 (the head), 10.77.0.3 and so on, each with
# a network, processes, a home folder, a /tmp/ray, a /var/lib/ponderay, shared memory and an sshd of its own, as namespaces
# of this machine. CMD itself runs as 10.77.0.1. All of it ends with CMD. Needs root, and Debian's openssh-server, openssh-client, rsync, iproute2.
#   HOSTS_VENV    virtual environment that all machines use (required)
#   HOSTS_FOLDER  an empty folder for their homes and logs (required); HOSTS_FOLDER/key is the ssh key to all of them
# `hosts.sh --permitted` only tells whether all of this may be done here.
[ "$1" = --permitted ] && exec unshare --mount --pid --fork --mount-proc --net --uts -- ip link add probe type bridge
[ "$HOSTS_INSIDE" ] || HOSTS_INSIDE=1 exec unshare --mount --pid --fork --mount-proc --net --uts --kill-child -- "$0" "$@"
set -e
: "${HOSTS_VENV:?}" "${HOSTS_FOLDER:?}"
folder=$HOSTS_FOLDER; ray_folder=/tmp/ray; real_home=$(cd ~ && pwd)
mkdir -p "$folder/client/home/.ssh" "$folder/client/ray" "$ray_folder" /run/netns /run/sshd
mount --make-rprivate /; mount -t tmpfs tmpfs /run/netns
ssh-keygen -q -t ed25519 -N '' -f "$folder/key"
ssh-keygen -q -t ed25519 -N '' -f "$folder/hostkey"
ip link set lo up; ip link add br0 type bridge; ip addr add 10.77.0.1/24 dev br0; ip link set br0 up

# An interpreter that lives in the home folder stays visible in the new one.
own_home() {
  [ -d "$real_home/.pyenv" ] && { mkdir -p "$1/.pyenv"; mount --bind "$real_home/.pyenv" "$1/.pyenv"; }
  mount --rbind "$1" "$real_home"
}
export -f own_home; export real_home
{ echo 127.0.0.1 localhost; for i in $(seq "${NUM_HOSTS:-3}"); do echo "10.77.0.$((i + 1)) h$i"; done; } > "$folder/hosts"

for i in $(seq "${NUM_HOSTS:-3}"); do
  host=h$i; ip=10.77.0.$((i + 1)); own=$folder/$host
  mkdir -p "$own/home/.ssh" "$own/home/ponderay/.venv" "$own/ray" "$own/server" /var/lib/ponderay
  ln -s "$HOSTS_VENV"/{bin,lib,pyvenv.cfg} "$own/home/ponderay/.venv"; touch -d 2100-01-01 "$own/home/ponderay/.venv/installed"
  ip netns add $host; ip link add v$host type veth peer name eth0 netns $host; ip link set v$host master br0 up
  ip -n $host link set lo up; ip -n $host addr add $ip/24 dev eth0; ip -n $host link set eth0 up
  ip -n $host route add default via 10.77.0.1
  cp "$folder/key.pub" "$own/home/.ssh/authorized_keys"
  chmod 700 "$own/home/.ssh"; chmod 600 "$own/home/.ssh/authorized_keys"
  echo 'export OMP_NUM_THREADS=1' > "$own/home/.bashrc"; cp "$own/home/.bashrc" "$own/home/.bash_profile"
  printf '%s\n' "Port 22" "ListenAddress $ip" "HostKey $folder/hostkey" "PermitRootLogin prohibit-password" \
    "PasswordAuthentication no" "UsePAM no" "StrictModes no" "PidFile none" "MaxStartups 100" > "$own/sshd_config"
  ip netns exec $host unshare --mount --pid --fork --mount-proc --uts --kill-child -- bash -c "
    hostname $host; mount --make-rprivate /; mount --bind $own/ray $ray_folder; mount --bind $own/server /var/lib/ponderay
    mount --bind $folder/hosts /etc/hosts; own_home $own/home
    mount -t tmpfs -o size=2g tmpfs /dev/shm
    exec /usr/sbin/sshd -D -e -f $own/sshd_config" > "$own/sshd.log" 2>&1 &
  echo $! > "$own/pid"
done
hostname client; mount --bind "$folder/client/ray" "$ray_folder"; own_home "$folder/client/home"
mount -t tmpfs -o size=1g tmpfs /dev/shm
for i in $(seq "${NUM_HOSTS:-3}"); do printf '%s\n' "Host h$i" " HostName 10.77.0.$((i + 1))"; done > ~/.ssh/config
printf '%s\n' "Host 10.77.0.* h*" " IdentityFile $folder/key" " StrictHostKeyChecking no" \
  " UserKnownHostsFile /dev/null" " LogLevel ERROR" >> ~/.ssh/config
set +e
for i in $(seq "${NUM_HOSTS:-3}"); do
  for _ in $(seq 50); do ssh -o ConnectTimeout=2 10.77.0.$((i + 1)) true 2>/dev/null && break; sleep .1; done
done
"$@"
