#!/usr/bin/env bash
# What the articles' manifests are warned of: all of it is in warnings.txt beside this, and nothing else. MUSTER_WRITE=1 writes it anew.
source "$(dirname "$0")/../lib.sh"
golden=tests/seeds/articles/warnings.txt
up_machine
kubectl create namespace ml-research >/dev/null
told() {
  local file
  for file in examples/seeds/*/*.yaml; do
    kubectl apply --dry-run=server -f "$file" 2>&1 >/dev/null | grep '^Warning' | grep -v last-applied |
      sed "s|^|${file#examples/seeds/}: |" || true
  done
}
if [ -n "${MUSTER_WRITE-}" ]; then told >"$golden"; fi
diff "$golden" <(told) || fail "not what $golden says"
say "result: $(wc -l <"$golden") warnings for $(ls examples/seeds/*/*.yaml | wc -l) manifests"
