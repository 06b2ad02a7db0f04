#!/usr/bin/env bash
# Issue 6: a chart whose second version changes all of it (lists that lose, gain and reorder elements, one kind of probe,
# volume or strategy for another, fields that go): an upgrade leaves what a fresh installation makes, and a rollback what was
# there before; the same by kubectl apply.
source "$(dirname "$0")/lib.sh"
source "$(dirname "$0")/charts/lib.sh"
up
chart=$CHARTS/changing
policies=$(kubectl api-resources -o name | grep '^networkpolicies' || true) # "" where they are not served

# what NAMESPACE: what its objects say, but for what the server chose and who made them.
what() {
  local kinds=deployments,cronjobs,pytorchjobs,services,poddisruptionbudgets,horizontalpodautoscalers,ingresses,roles,configmaps,secrets,limitranges
  [ -z "$policies" ] || kinds+=,networkpolicies.networking.k8s.io
  kubectl get "$kinds" -n "$1" -o json | jq -S '[.items[] | select(.metadata.name == "it") |
    {kind, labels: (.metadata.labels // {} | del(."app.kubernetes.io/managed-by")),
     annotations: (.metadata.annotations // {} | with_entries(select(.key == "stays" or .key == "comes" or .key == "goes"))),
     spec, data, rules} | del(.spec.clusterIP, .spec.clusterIPs, .spec.ports[]?.nodePort)]' >"$SCRATCH/$1"
  local objects
  objects=$(jq length "$SCRATCH/$1")
  [ "$objects" -ge 11 ] || fail "only $objects objects in $1"
}
same() { # same NAMESPACE NAMESPACE
  what "$1"
  what "$2"
  diff "$SCRATCH/$1" "$SCRATCH/$2" >"$SCRATCH/differences" || fail "$1 is not as $2 (<: $1): $(cat "$SCRATCH/differences")"
}
differ() { # differ NAMESPACE NAMESPACE
  what "$1"
  what "$2"
  [ "$(diff "$SCRATCH/$1" "$SCRATCH/$2" | wc -l)" -ge 200 ] || fail "$1 and $2 hardly differ"
}

helm install it "$chart" -n first --create-namespace >/dev/null 2>&1
helm install it "$chart" -n second --create-namespace --set second=true >/dev/null 2>&1
differ first second
helm install it "$chart" -n moving --create-namespace >/dev/null 2>&1
same moving first
helm upgrade it "$chart" -n moving --set second=true >/dev/null 2>&1
same moving second
helm rollback it 1 -n moving >/dev/null 2>&1
same moving first
helm upgrade it "$chart" -n moving --set second=true --force >"$SCRATCH/forced" 2>&1 || fail "$(cat "$SCRATCH/forced")"
same moving second

kubectl create namespace applied >/dev/null
for version in first second first; do
  helm template it "$chart" -n applied ${policies:+--api-versions networking.k8s.io/v1/NetworkPolicy} \
    --set "second=$([ $version = first ] && echo false || echo true)" | kubectl apply -n applied -f - >/dev/null 2>&1
  same applied $version
done
say "result: upgrades, rollbacks, replacements and kubectl apply left what a fresh installation makes, of $(jq length "$SCRATCH/first") kinds"
