#!/usr/bin/env bash
# Issue 2, shown by 6: `muster run` from a folder with a virtual environment.
source "$(dirname "$0")/lib.sh"
"$ROOT/tools/probe" python_torch python_venv
up
mkdir -p "$SCRATCH/project" && cd "$SCRATCH/project"
/usr/bin/python3 -m venv --system-site-packages venv
echo 'ANSWER = 42' >venv/lib/python3.11/site-packages/only_in_venv.py
cp "$ROOT/examples/train_digits.py" train.py
sed -i 's/^import torch$/import torch\nimport only_in_venv/' train.py
# shellcheck disable=SC1091
source venv/bin/activate
"$MUSTER" run --workers 2 --name digits -- python3 train.py | tee "$SCRATCH/run.out"
contains "$(cat "$SCRATCH/run.out")" "trained by 2 processes" "output of muster run"

status=0
"$MUSTER" run --name fails -- sh -c 'echo to stdout; exit 7' >"$SCRATCH/fails.out" 2>&1 || status=$?
equals $status 7 "exit code of muster run"
contains "$(cat "$SCRATCH/fails.out")" "to stdout"

# A pod reaches what the host reaches: here neither reaches anything, and both say so quickly.
host=0
timeout 60 python3 -m pip download --retries 0 --timeout 5 --no-deps -q -d "$SCRATCH/wheels" six >/dev/null 2>&1 || host=$?
pod=0
timeout 90 "$MUSTER" run --name pip -- python3 -m pip download --retries 0 --timeout 5 --no-deps -q -d /tmp/wheels six >/dev/null 2>&1 || pod=$?
equals $((pod != 0)) $((host != 0)) "pip download works in a pod exactly if it works on the host"
say "result: muster run trained with 2 ranks from a virtual environment; exit code 7 came back; pip as on the host (exit $host, $pod)"
