#!/usr/bin/env bash
# Issue 2, shown by 1 (second run, packages and build present): ./quickstart trains the example within 60 s.
source "$(dirname "$0")/lib.sh"
"$ROOT/tools/probe" python_torch
start=$SECONDS
MUSTER_DATA_DIR=$DATA ./quickstart | tee "$SCRATCH/quickstart.out"
took=$((SECONDS - start))
output=$(cat "$SCRATCH/quickstart.out")
contains "$output" "final test accuracy 0.9" "training log"
contains "$output" "Succeeded" "job state"
contains "$output" "What you could try next" "last words"
[ $took -lt 60 ] || fail "quickstart took $took s, at most 60"

uids=$(kubectl get pods -A -o 'jsonpath={.items[*].metadata.uid}')
[ -n "$uids" ] || fail "no pods to look for after down"
"$MUSTER" down --purge --data-dir "$DATA"
[ ! -e "$DATA" ] || fail "$DATA is still there"
equals "$(pgrep -x muster || true)" "" "processes after down"
equals "$(ip -o link | grep -c muster || true)" 0 "links after down"
equals "$(nft list tables 2>/dev/null | grep -c muster || true)" 0 "nft tables after down"
equals "$(ip route | grep -c 10.4 || true)" 0 "routes after down"
equals "$(grep -c "$SCRATCH" /proc/mounts || true)" 0 "mounts after down"
for uid in $uids; do # the cgroup tree is the machine's: other clusters may have groups in it
  equals "$(find /sys/fs/cgroup -maxdepth 4 -type d -name "*$uid*" 2>/dev/null | wc -l)" 0 "cgroups of pod $uid after down"
done
say "result: quickstart (packages and build present): $took s; down --purge left nothing"
