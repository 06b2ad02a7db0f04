#!/usr/bin/env bash
# Issue 3, item 7: kill -9 of the control plane, the spawner and the shims at random moments loses and leaks nothing.
#   MUSTER_KILLS=1000 MUSTER_SEED=7 tests/netbox/netbox tests/live/fire.sh
source "$(dirname "$0")/lib.sh"
seed=${MUSTER_SEED:-$((RANDOM * 32768 + RANDOM))}
say "seed $seed"
up
MUSTER=$MUSTER python3 "$ROOT/tests/live/fire/killer.py" "$DATA" "${MUSTER_KILLS:-30}" "$seed"
