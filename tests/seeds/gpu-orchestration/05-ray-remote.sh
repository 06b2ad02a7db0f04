#!/usr/bin/env bash
# A program of Ray whose calls take two GPUs each: they run one after another on the worker that has two.
source "$(dirname "$0")/../lib.sh"
source tests/seeds/ray.sh
a100 2
up_machine
with_ray <"$EXAMPLE" | kubectl apply -f -
kubectl wait raycluster/program --for=jsonpath='{.status.state}'=ready --timeout=240s
in_head program python /program/program.py >"$SCRATCH/out" 2>"$SCRATCH/errors" || fail "$(cat "$SCRATCH/errors")"
contains "$(cat "$SCRATCH/out")" "{'steps': 1, 'weight': 0.6, 'gpus': 2}" "what the program printed"
contains "$(cat "$SCRATCH/out")" "{'steps': 50, 'weight': 3.0, 'gpus': 2}" "what the program printed"
say "result: tasks of Ray with two GPUs each"
