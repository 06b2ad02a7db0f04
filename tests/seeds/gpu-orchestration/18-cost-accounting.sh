#!/usr/bin/env bash
# "Per-Pod Cost Accounting", "Idle GPU Mitigation": who had which GPUs for how long, by the article's annotations, with shares of
# a GPU and what was idle; it adds up to what the node costs, and goes on when pods, the job and the server are gone.
source "$(dirname "$0")/../lib.sh"

a100 4
up_machine
kubectl create configmap muster-prices -n kube-system --from-literal=prices.yaml='gpus: {A100: 3600}' >/dev/null
report() { muster cost --since 1h -o json "$@"; }
# of REPORT NAME FIELD: a number of an allocation, of idle or of the total.
of() {
  python3 -c '
import json, sys
report = json.load(sys.stdin)
entries = {each["name"]: each for each in report["allocations"] + [report["idle"], report["total"]]}
print(entries.get(sys.argv[1], {}).get(sys.argv[2], "none"))' "$2" "$3" <<<"$1"
}
adds_up() {
  python3 -c '
import json, sys
report = json.load(sys.stdin)
parts = sum(each["totalCost"] for each in report["allocations"]) + report["idle"]["totalCost"]
assert abs(parts - report["total"]["totalCost"]) < 0.001, report
assert report["total"]["gpuHours"] > 0 and report["idle"]["gpuHours"] > 0, report' <<<"$1" || fail "does not add up: $1"
}
# at_least REPORT NAME SECONDS: has had a GPU for so long.
at_least() { python3 -c 'import sys; sys.exit(not float(sys.argv[1]) * 3600 >= float(sys.argv[2]))' "$(of "$1" "$2" gpuHours)" "$3"; }
had() { at_least "$(report "${@:3}")" "$1" "$2"; }

kubectl apply -f "$EXAMPLE" >/dev/null
running() { [ "$(kubectl get pods --no-headers | grep -c Running)" = 3 ]; }
eventually 120 running
eventually 120 had ml-team 4
eventually 120 had research 1
now=$(report)
adds_up "$now"
# Two GPUs beside a quarter of one: eight times as much of the same time, and the job starts first or soon after.
python3 -c 'import sys; a, b = map(float, sys.argv[1:]); sys.exit(not a / b > 2)' \
  "$(of "$now" ml-team gpuHours)" "$(of "$now" research gpuHours)" || fail "shares: $now"
say "$(muster cost --since 1h)"
equals "$(of "$(report --by project)" recommendation-model pods)" 2 "pods of the project"
equals "$(of "$(report --by owner)" data-science-squad pods)" 2 "pods of the owner"
equals "$(of "$(report --by job)" default/pytorchjob/recommend pods)" 2 "pods of the job"
equals "$(of "$(report --by namespace)" default pods)" 3 "pods of the namespace"

# All of it goes; what it cost stays, also over the death of the server, and does not grow any more.
kubectl delete -f "$EXAMPLE" --wait >/dev/null
written() { kubectl get costledgers -o json | python3 -c '
import json, sys
pods = sum(row["pods"] for each in json.load(sys.stdin)["items"] for row in each["spec"].get("pods", []))
sys.exit(pods != 3)'; }
eventually 120 written
before=$(report)
pid=$(control_plane_pid)
kill -9 "$pid"
eventually 10 bash -c "! kill -0 $pid 2>/dev/null"
up_machine
after=$(report)
for name in ml-team research; do
  equals "$(of "$after" $name gpuHours)" "$(of "$before" $name gpuHours)" "GPU-hours of $name after a restart"
done
adds_up "$after"
python3 -c 'import sys; a, b = map(float, sys.argv[1:]); sys.exit(not b > a)' \
  "$(of "$before" __idle__ gpuHours)" "$(of "$after" __idle__ gpuHours)" || fail "idle GPUs cost nothing: $after"
say "result: by cost-center, project, owner, job; fractions; idle; after the pods and the server were gone"
