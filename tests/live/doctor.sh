#!/usr/bin/env bash
# Issue 4, shown by 5: machines that are broken in one way each. `muster doctor` names it and the fix; `muster up` refuses
# before it changes anything where it cannot work, and goes on with a warning where it can.
source "$(dirname "$0")/lib.sh"
machines=0

# machine SETUP COMMAND: both by bash in network and mount namespaces of their own. SETUP may define enter(), by which
# the command is run.
machine() {
  unshare --net --mount -- bash -euo pipefail -c "enter() { \"\$@\"; }; ip link set lo up; $1
    enter bash -c \"\$0\"" "$2"
}
doctor="exec '$MUSTER' doctor --data-dir '$DATA'"

# sick SUBJECT STATUS WORDS SETUP: what doctor says of a machine, with its exit code, and what up does there.
sick() {
  local subject=$1 status=$2 words=$3 setup=$4 output line code=0
  output=$(machine "$setup" "$doctor" 2>&1) || code=$?
  line=$(grep -E "^(OK|WARN|FAIL) +$subject " <<<"$output") || fail "no line about $subject in: $output"
  [[ $line == "$status"* ]] || fail "$subject: expected $status, got: $line"
  contains "$line" "$words" "$subject"
  if [ "$status" = OK ]; then [[ $line != *"; fix: "* ]] || fail "a fix for what is well: $line"
  else contains "$line" "; fix: " "$subject"; fi
  [ "$status" = FAIL ] || equals "$code" 0 "exit code of doctor: $output"
  if [ "$status" = FAIL ]; then
    equals "$code" 1 "exit code of doctor ($subject)"
    code=0
    output=$(machine "$setup" "exec '$MUSTER' up --detach --data-dir '$DATA'" 2>&1) || code=$?
    equals "$code" 1 "exit code of up ($subject): $output"
    contains "$(grep "^muster up: $subject: " <<<"$output")" "$words" "up"
    contains "$output" "nothing was changed" "up"
    [ ! -e "$DATA/run" ] || fail "up made files although $subject"
  fi
  machines=$((machines + 1))
}
listener() { # listener PROTOCOL ADDRESS PORT: a setup
  local listen='s.listen()'
  [ "$1" = STREAM ] || listen=pass
  echo "coproc python3 -c 'import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_$1)
s.bind((\"$2\", $3))
$listen
print(flush=True); sys.stdin.read()'; read -ru \${COPROC[0]};"
}

sick "forward policy" OK "nothing drops" ""
sick "forward policy" WARN "iptables -I DOCKER-USER -i muster0 -j ACCEPT" \
  'nft "table ip filter { chain DOCKER-USER { }
   chain FORWARD { type filter hook forward priority filter; policy drop; jump DOCKER-USER; }; }"'
sick "API server port" FAIL "127.0.0.1:6443 is taken by python3" "$(listener STREAM 127.0.0.1 6443)"
sick "kubelet port" FAIL "muster up --kubelet-port 0" "$(listener STREAM 0.0.0.0 10250)"
sick "DNS port" FAIL "10.42.0.1:53 is taken by python3" "$(listener DGRAM 0.0.0.0 53)"
sick nft FAIL "apt-get install nftables" \
  'for f in /usr/sbin/nft /sbin/nft /usr/bin/nft /usr/local/sbin/nft; do [ ! -e $f ] || mount --bind /dev/null $f; done'
mkdir "$DATA"
sick disk FAIL "make room" "mount -t tmpfs -o size=20m full '$DATA'"
sick disk FAIL "more files (inodes)" "mount -t tmpfs -o nr_inodes=500 full '$DATA'"
sick disk FAIL "Read-only file system" "mount -t tmpfs -o ro still '$DATA'"
sick forwarding OK "muster up switches it on" 'echo 0 >/proc/sys/net/ipv4/ip_forward'
sick forwarding FAIL "sysctl -w net.ipv4.ip_forward=1" \
  'echo 0 >/proc/sys/net/ipv4/ip_forward; mount --bind /proc/sys /proc/sys; mount -o remount,ro,bind /proc/sys'
sick cgroups WARN "limits of pods are not enforced" 'while umount -R /sys/fs/cgroup 2>/dev/null; do :; done'
sick "address ranges" FAIL "overlaps a route of this machine" 'ip link add d0 type bridge; ip link set d0 up
  for range in 10.0.0.0/8 172.16.0.0/12 100.64.0.0/10 198.18.0.0/15; do ip route add $range dev d0; done'
# An overlay over an overlay is as deep as the kernel goes: as in a container that itself is in one.
mkdir "$SCRATCH/deep"
sick overlay FAIL "modprobe overlay" "mount -t tmpfs deep '$SCRATCH/deep'; cd '$SCRATCH/deep'; mkdir u1 w1 m1 u2 w2 m2
  mount -t overlay o -o lowerdir=/,upperdir=u1,workdir=w1 m1
  mount -t overlay o -o lowerdir=m1,upperdir=u2,workdir=w2 m2
  for part in proc dev sys tmp '$ROOT'; do mount --rbind /\$part m2/\$part; done
  enter() { chroot '$SCRATCH/deep/m2' \"\$@\"; }"
# A cluster whose keys were made in the future: this machine's clock is behind.
mkdir "$DATA/pki" "$SCRATCH/ca"
(cd "$SCRATCH/ca" && touch index && echo 01 >serial && printf '%s\n' '[ca]' 'default_ca=c' '[c]' 'database=index' \
  'serial=serial' 'new_certs_dir=.' 'default_md=sha256' 'policy=p' '[p]' 'commonName=supplied' >conf &&
  openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout key -subj /CN=muster-ca -out request &&
  openssl ca -batch -config conf -selfsign -keyfile key -in request -out cert -startdate 20490101000000Z \
    -enddate 20590101000000Z -notext) >"$SCRATCH/openssl.log" 2>&1 || fail "openssl: $(cat "$SCRATCH/openssl.log")"
cp "$SCRATCH/ca/cert" "$DATA/pki/ca.crt"
sick clock FAIL "certificate begins at 2049-01-01T00:00:00Z" ""
rm -r "$DATA"
# An ordinary user in a container whose owner allows no namespaces.
chmod 755 "$SCRATCH"
mkdir -m 1777 "$SCRATCH/users"
doctor="exec '$MUSTER' doctor --data-dir '$SCRATCH/users/nobody'"
sick namespaces WARN "sudo sysctl -w user.max_user_namespaces=16384" 'enter() {
  setpriv --reuid=65534 --regid=65534 --clear-groups unshare --user --map-current-user --keep-caps bash -c \
    "echo 0 >/proc/sys/user/max_user_namespaces && exec setpriv --ambient-caps -all --inh-caps -all \"\$@\"" sh "$@"; }'

# The same user without a way out, without a home, and as the root of a user namespace.
nobody() { setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; }
nobody_enters='enter() { setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; }'
no_programs='for f in /usr/bin/pasta /usr/bin/slirp4netns /usr/bin/skopeo /usr/bin/umoci; do
  [ ! -e $f ] || mount --bind /dev/null $f; done'
sick "outside network" WARN "sudo apt-get install passt" "$no_programs; $nobody_enters"
sick images WARN "sudo apt-get install skopeo umoci" "$no_programs; $nobody_enters"
contains "$(nobody env -u HOME "$MUSTER" doctor 2>&1 || true)" "HOME is not set: say where" "without a home"
contains "$(nobody env -u HOME -u KUBECONFIG "$MUSTER" get pods 2>&1 || true)" "HOME is not set" "without a home"
sick overlay FAIL "on the host, as its root: modprobe overlay" \
  'enter() { setpriv --reuid=65534 --regid=65534 --clear-groups unshare --user --map-root-user "$@"; }'
# Something else is where the data directory should be.
echo mine >"$SCRATCH/file"
for place in "$SCRATCH/file" "$SCRATCH/file/data"; do
  equals "$("$MUSTER" doctor --data-dir "$place" | grep ^FAIL)" "FAIL  disk             --data-dir $place: \
$SCRATCH/file is a file, not a directory; fix: name a directory elsewhere: --data-dir DIR" "a file in its place"
done

# Another user's directory: said once, whether it can be looked into or not; and nowhere to make one.
"$MUSTER" up --detach --data-dir "$SCRATCH/users/roots" >/dev/null 2>&1
"$MUSTER" down --data-dir "$SCRATCH/users/roots" >/dev/null
equals "$(nobody "$MUSTER" doctor --data-dir "$SCRATCH/users/roots" | grep ^FAIL)" "FAIL  disk             \
$SCRATCH/users/roots is a private directory of user 0: run this as that user, or name another directory with --data-dir; \
fix: name a directory elsewhere: --data-dir DIR" "doctor of another's directory"
for command in up down "backup $SCRATCH/users/b"; do
  # shellcheck disable=SC2086
  contains "$(nobody "$MUSTER" $command --data-dir "$SCRATCH/users/roots" 2>&1 || true)" \
    "roots is a private directory of user 0" "$command in another's directory"
done
"$MUSTER" down --purge --data-dir "$SCRATCH/users/roots" >/dev/null
contains "$(nobody "$MUSTER" doctor --data-dir "$SCRATCH/home/none" || true)" \
  "FAIL  disk             --data-dir $SCRATCH/home/none: $SCRATCH/home: Permission denied" "a directory of somebody else's"

# Somebody's network is where pods and Services usually are: others are chosen, and kept when it is gone.
other_network='ip link add d0 type bridge; ip link set d0 up; ip addr add 10.42.7.1/24 dev d0
  ip route add 10.44.0.0/24 dev d0 table 99'
sick "address ranges" OK "pods 10.43.0.0/16, Services 10.45.0.0/16: chosen because" "$other_network"
eval "$other_network"
contains "$(up 2>&1)" "pods 10.43.0.0/16, Services 10.45.0.0/16: chosen because the usual ones overlap" "up"
for round in first second; do
  equals "$(jsonpath service/kubernetes .spec.clusterIP)" 10.45.0.1 "API address, $round start"
  kubectl run "web-$round" --image=none --restart=Never --command -- python3 -m http.server 80 >/dev/null
  eventually 20 pod_phase_is "web-$round" Running
  contains "$(jsonpath "pod/web-$round" .status.podIP)" 10.43.0. "pod address"
  kubectl expose pod "web-$round" --port=80 >/dev/null
  contains "$(jsonpath "service/web-$round" .spec.clusterIP)" 10.45. "Service address"
  # By name: DNS and Services are where the ranges say.
  muster run --name "ask-$round" -- python3 -c "
import time, urllib.request
for _ in range(100):
    try: print(urllib.request.urlopen('http://web-$round', timeout=5).status); break
    except OSError: time.sleep(0.1)" | grep -q 200 || fail "web-$round was not reached"
  [ $round = second ] || { "$MUSTER" down --data-dir "$DATA" && ip link del d0 && up; }
done
equals "$(ip -4 addr show muster0 | grep -c 10.43.0.1/24)" 1 "the bridge's address"
"$MUSTER" down --purge --data-dir "$DATA"
equals "$(ip route | grep -cE '10\.4[0-9]' || true)" 0 "routes after down"

# A firewall that drops: pods cannot talk; the fix, word for word, lets them.
nft 'table inet fire { chain through { type filter hook forward priority filter; policy drop; }; }'
contains "$(up 2>&1)" "warning: forward policy: table inet fire, chain through drops" "up"
kubectl run server --image=none --restart=Never --command -- python3 -m http.server 80 >/dev/null
eventually 20 pod_phase_is server Running
reach() {
  muster run --name "reach-$1" -- python3 -c "
import socket, sys
try: socket.create_connection(('$(jsonpath pod/server .status.podIP)', 80), timeout=3)
except OSError as error: sys.exit(str(error))"
}
if reach closed 2>/dev/null; then fail "the firewall does not drop: this proves nothing"; fi
fix=$("$MUSTER" doctor --data-dir "$DATA" | sed -n 's/^WARN *forward policy .*; fix: //p')
bash -ec "$fix" || fail "the fix does not work: $fix"
eventually 10 reach open
contains "$("$MUSTER" doctor --data-dir "$DATA" -o json | jq -r '.[] | select(.check == "forward policy").status')" OK
contains "$("$MUSTER" doctor --data-dir "$DATA")" "in use by this cluster (process $(control_plane_pid))"
contains "$("$MUSTER" doctor --data-dir "$SCRATCH/other")" "6443 is in use by your cluster in $DATA, muster (process " \
  "another data directory beside a cluster of one's own"
contains "$("$MUSTER" up --data-dir "$SCRATCH/other" --listen 127.0.0.1:7443 --kubelet-port 0 2>&1 || true)" \
  "root has one cluster on a machine" "a second cluster of root's"
say "result: doctor: $machines machines, each named with its fix; up refused or warned as promised"
