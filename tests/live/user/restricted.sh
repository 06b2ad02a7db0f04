#!/usr/bin/env bash
# Part of tests/live/user.sh, as an ordinary user whose user namespaces have no rights (AppArmor, as of Ubuntu 24.04): the
# words, once, with the fix; and pods run as plain processes.
source "$(dirname "$0")/../lib.sh"
unshare -U true || fail "this test is for a machine that makes user namespaces"
fix="sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"
line=$("$MUSTER" doctor --data-dir "$DATA" | grep "^WARN  namespaces ") || fail "doctor: no warning"
contains "$line" "AppArmor takes all rights from user namespaces of ordinary users" "doctor"
contains "$line" "fix: $fix" "doctor"
up >"$SCRATCH/up.out" 2>&1
equals "$(grep -c AppArmor "$SCRATCH/up.out")" 1 "how often up says it: $(cat "$SCRATCH/up.out")"
contains "$(cat "$SCRATCH/up.out")" "fix: $fix" "up"
message=$(kubectl get nodes -o "jsonpath={.items[0].status.conditions[?(@.type=='NoNamespaces')].message}")
contains "$message" "$fix" "condition NoNamespaces"
kubectl run plain --image=none --restart=Never --command -- sh -c 'echo ran' >/dev/null
eventually 20 pod_phase_is plain Succeeded
equals "$(kubectl logs plain)" ran "log"
"$MUSTER" down --purge --data-dir "$DATA"
[ ! -e "$DATA" ] || fail "$DATA is still there: $(find "$DATA")"
say "result: user namespaces without rights: AppArmor and the fix are named once, pods are plain processes"
