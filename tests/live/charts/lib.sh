# Shared by tests/live/helm_*.sh, after lib.sh: stock helm on the charts beside this file.
CHARTS=$ROOT/tests/live/charts
command -v jq >/dev/null || skip "jq is not installed (tools/install-packages test)"
[ -x "$KUBECTL_DIR/helm" ] || fail "no helm in $KUBECTL_DIR (tests/tools/fetch-kubectl 32)"

in_namespace() { # in_namespace NAME: for helm and kubectl from here on
  export HELM_NAMESPACE=$1
  kubectl config set-context --current --namespace="$1" >/dev/null
}
release() { helm status "$1" -o json | jq -r "$2"; }     # release NAME JQ-PATH
history_of() { helm history "$1" -o json | jq -r '[.[].status] | join(" ")'; }
is_gone() { local found; found=$(kubectl get "$1" --ignore-not-found -o name) && [ -z "$found" ]; }

# refused TEXT COMMAND...: it fails, and says that.
refused() {
  local text=$1 output
  shift
  if output=$("$@" 2>&1); then fail "this succeeded: $*"; fi
  contains "$output" "$text" "$*"
}

# What is in a namespace beside what every namespace has and what happened.
left_in() { # left_in NAMESPACE: names in one line
  local kinds
  kinds=$(kubectl api-resources --verbs=list --namespaced -o name | grep -vE '^(events|pods\.metrics)' | sort -u | paste -sd,)
  kubectl get "$kinds" -n "$1" -o name --ignore-not-found | grep -vxE 'configmap/kube-root-ca.crt|serviceaccount/default' | sort | xargs
}
left_are() { equals "$(left_in "$1")" "$2" "what is left in $1"; }
