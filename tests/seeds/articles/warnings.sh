#!/usr/bin/env bash
# What the articles' manifests are warned of: all of it is in warnings.txt beside this, and nothing else. MUSTER_WRITE=1 writes it anew.
source "$(dirname "$0")/../lib.sh"
golden=tests/seeds/articles/warnings.txt
up_machine
for name in $(sed -nE 's/.*namespace: ([a-z-]+).*/\1/p' examples/seeds/*/*.yaml | grep -vxE "kube-system|default" | sort -u); do
  kubectl create namespace "$name" >/dev/null
done
kubectl create priorityclass production --value=1000 >/dev/null # nothing is created, so a pod finds no class of its own file
told() {
  local file
  for file in examples/seeds/*/*.yaml; do
    kubectl apply --dry-run=server -f "$file" 2>&1 >/dev/null | grep -v last-applied | sed "s|^|${file#examples/seeds/}: |" || true
  done
}
if [ -n "${MUSTER_WRITE-}" ]; then told >"$golden"; fi
diff "$golden" <(told) || fail "not what $golden says"
say "result: $(wc -l <"$golden") warnings for $(ls examples/seeds/*/*.yaml | wc -l) manifests"
