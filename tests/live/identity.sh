#!/usr/bin/env bash
# Service accounts, tokens and RBAC with stock kubectl: a token lists pods with its role and gets 403 without; what does
# not hold gets 401; the scheduler works with the role that it prints.
source "$(dirname "$0")/lib.sh"
up --scheduler=off

server=$(kubectl config view --raw -o 'jsonpath={.clusters[0].cluster.server}')
kubectl config view --raw -o 'jsonpath={.clusters[0].cluster.certificate-authority-data}' | base64 -d >"$SCRATCH/ca.crt"
as() { kubectl --kubeconfig /dev/null --server "$server" --certificate-authority "$SCRATCH/ca.crt" --token "$1" "${@:2}"; }
code() { # code TOKEN: the answer to a LIST of pods
  curl -s -o /dev/null -w '%{http_code}' --cacert "$SCRATCH/ca.crt" -H "Authorization: Bearer $1" "$server/api/v1/namespaces/default/pods"
}

kubectl create serviceaccount robot
token=$(kubectl create token robot)
contains "$(as "$token" auth whoami)" "system:serviceaccount:default:robot" "whoami"
equals "$(as "$token" auth can-i list pods || true)" no "can-i without a role"
refused=$(as "$token" get pods 2>&1) && fail "listed pods without a role"
contains "$refused" 'User "system:serviceaccount:default:robot" cannot list resource "pods" in API group "" in the namespace "default"' "without a role"
kubectl create role reader --verb=get,list --resource=pods
kubectl create rolebinding robot --role=reader --serviceaccount=default:robot
equals "$(as "$token" auth can-i list pods)" yes "can-i with the role"
as "$token" get pods
equals "$(code "$token")" 200 "with the role"
as "$token" get pods -A 2>/dev/null && fail "listed the pods of all namespaces"
contains "$(as "$token" auth can-i --list)" "pods" "can-i --list"
equals "$(code "${token}x")" 401 "a tampered token"
equals "$(code "$(kubectl create token robot --audience=other)")" 401 "a token for somebody else"
equals "$(code eyJhbGciOiJub25lIn0.e30.)" 401 "alg none"
kubectl create token robot --duration=1m >/dev/null 2>&1 && fail "a token of a minute"

# The default roles: view is gathered from its parts, and chained into edit and admin.
gathered() { kubectl get clusterrole "$1" -o yaml | grep -q "$2"; }
eventually 10 gathered view pods/log
eventually 10 gathered edit pods/log
eventually 10 gathered admin pods/eviction
kubectl create rolebinding viewer --clusterrole=view --user=eve
equals "$(kubectl auth can-i list deployments.apps --as=eve)" yes "view"
for role in view edit admin; do eventually 10 gathered $role metrics.k8s.io; done
equals "$(kubectl auth can-i list pods.metrics.k8s.io --as=eve)" yes "view and what pods use"
kubectl get --raw /apis/metrics.k8s.io/v1beta1/nodes --as=eve >/dev/null 2>&1 && fail "a role binding is enough for what nodes use"
kubectl get --raw /apis/metrics.k8s.io/v1beta1/namespaces/default/pods --as=eve >/dev/null
equals "$(kubectl auth can-i get secrets --as=eve || true)" no "view and secrets"

# What was signed before a restart holds after it; the key is its owner's alone.
equals "$(stat -c %a "$DATA/pki/sa.key")" 600 "mode of the key"
"$MUSTER" down --data-dir "$DATA"
up --scheduler=off
equals "$(code "$token")" 200 "after a restart"
grep -rqF "$token" "$DATA/logs" && fail "a token is in the log"
kubectl delete serviceaccount robot
equals "$(code "$token")" 401 "the token of a deleted account"
say "result: tokens and roles with stock kubectl"
