#!/usr/bin/env bash
# Issue 6: a web application's chart through stock helm: hooks, tests, upgrades that wait, one that fails and is taken back
# by itself, rollback, an autoscaler, objects that were there before, a release near the limit of a Secret, what is left.
source "$(dirname "$0")/lib.sh"
source "$(dirname "$0")/charts/lib.sh"
up
web=$CHARTS/web
in_namespace shop

says() { # says TEXT: what the release's test got from its Service
  contains "$(helm test site --logs --timeout 60s 2>&1)" "$1" "helm test"
}
kept() { jsonpath configmap/site-web-kept ".data.$1"; }

say "== what helm would install: it has asked the server, and changed nothing"
helm lint --strict "$web" >/dev/null
helm install site "$web" --create-namespace --dry-run=server >"$SCRATCH/dry"
address=$(kubectl -n default get service kubernetes -o 'jsonpath={.spec.clusterIP}')
contains "$(cat "$SCRATCH/dry")" "server: \"$address\"" "lookup in a dry run"
contains "$(cat "$SCRATCH/dry")" 'autoscaling: "true"' "Capabilities.APIVersions in a dry run"
kubectl get namespace shop >/dev/null 2>&1 && fail "a dry run made a namespace"

say "== install"
helm install site "$web" --create-namespace --wait --timeout 60s >/dev/null
equals "$(jsonpath deployment/site-web .status.readyReplicas)" 2 "ready replicas after --wait"
equals "$(helm list -o json | jq -r '.[] | "\(.name) \(.namespace) \(.revision) \(.status) \(.chart)"')" \
  "site shop 1 deployed web-0.1.0" "helm list"
equals "$(helm list -A -q)" site "helm list -A"
equals "$(release site .info.status)" deployed "helm status"
contains "$(helm status site --show-resources)" "site-web" "helm status --show-resources"
contains "$(helm get notes site)" "site-web greets with hello" "notes"
contains "$(helm get manifest site)" "kind: PodDisruptionBudget" "manifest"
equals "$(helm get hooks site | grep -c '^kind:')" 5 "hooks"
equals "$(helm get values site -o json)" null "values"
equals "$(kept autoscaling) $(kept budget) $(kept ingress) $(kept batch) $(kept prometheus)" "true true true true false" \
  "Capabilities.APIVersions"
equals "$(kept kubeVersion)" "$(kubectl version -o json | jq -r .serverVersion.gitVersion)" "Capabilities.KubeVersion"
equals "$(kept server)" "$address" "lookup"
equals "$(kubectl get jobs -o name)" "" "hooks that succeeded"
equals "$(jsonpath configmap/site-web-installed .data.revision)" 1 "a hook that stays"
equals "$(kubectl get secrets -l owner=helm,name=site -o 'jsonpath={.items[*].metadata.name} {.items[*].type}')" \
  "sh.helm.release.v1.site.v1 helm.sh/release.v1" "the release's Secret"
equals "$(kubectl exec deployment/site-web -- awk '/^(Uid|CapBnd|NoNewPrivs|Seccomp):/ {print $2}' /proc/self/status | xargs)" \
  "65534 0000000000000000 1 2" "user, capabilities, no_new_privs and seccomp of the pods"
contains "$(kubectl get ingress site-web --no-headers)" "web.example.com" "the Ingress"
equals "$(jsonpath pdb/site-web .status.disruptionsAllowed)" 1 "allowed disruptions"
says '"greeting": "hello"'
refused 'cannot re-use a name that is still in use' helm install site "$web"

say "== upgrade: configuration, environment, replicas; what others wrote stays"
kubectl annotate deployment site-web example.com/owner=shop >/dev/null
kubectl label service site-web tier=front >/dev/null
first=$(jsonpath deployment/site-web '.spec.template.metadata.annotations.checksum/config')
helm upgrade site "$web" --wait --timeout 60s --set greeting=welcome,replicaCount=3 \
  --set 'extraEnv[0].name=EXTRA,extraEnv[0].value=more' >/dev/null
equals "$(kubectl get deployment site-web -o 'jsonpath={.status.readyReplicas} {.status.updatedReplicas} {.status.replicas}')" "3 3 3" \
  "replicas after the upgrade"
[ "$(jsonpath deployment/site-web '.spec.template.metadata.annotations.checksum/config')" != "$first" ] || fail "the same checksum"
equals "$(jsonpath deployment/site-web '.metadata.annotations.example\.com/owner')" shop "somebody's annotation"
equals "$(jsonpath service/site-web .metadata.labels.tier)" front "somebody's label"
equals "$(helm get values site -o json | jq -r .greeting)" welcome "values"
says '"greeting": "welcome"'
says '"extra": "more"'
equals "$(jsonpath configmap/site-web-installed .data.revision)" 1 "a hook for installations only"

say "== one that does not come up is taken back by itself"
refused 'release site failed, and has been rolled back due to atomic being set' \
  helm upgrade site "$web" --atomic --timeout 6s --reuse-values --set image.repository=registry.invalid/nothing
equals "$(history_of site)" "superseded superseded failed deployed" "history"
equals "$(jsonpath deployment/site-web '.spec.template.spec.containers[0].image')" none "image after it was taken back"
equals "$(jsonpath deployment/site-web .status.readyReplicas)" 3 "replicas after it was taken back"
says '"greeting": "welcome"'
refused 'pre-upgrade hooks failed: 1 error occurred' helm upgrade site "$web" --reuse-values --set before='exit 3' --timeout 30s
equals "$(kubectl get job site-web-before -o 'jsonpath={.status.conditions[?(@.type=="Failed")].reason}')" BackoffLimitExceeded \
  "a hook that failed stays"
refused 'field is immutable' helm upgrade site "$web" --reuse-values --set nameOverride=other --set fullnameOverride=site-web
equals "$(release site .info.status)" failed "a release whose upgrade was refused"

say "== rollback"
helm rollback site 1 --wait --timeout 60s >/dev/null
equals "$(history_of site)" "superseded superseded failed superseded failed failed deployed" "history after rollback"
equals "$(jsonpath deployment/site-web .status.readyReplicas)" 2 "replicas after rollback"
is_gone job/site-web-before || fail "a hook of before is still there"
says '"greeting": "hello"'
helm upgrade site "$web" --force --set greeting=forced --wait --timeout 60s >/dev/null
says '"greeting": "forced"'

say "== an autoscaler takes over"
helm upgrade site "$web" --set autoscaling.enabled=true --wait --timeout 60s >/dev/null
scaled() { equals "$(jsonpath deployment/site-web .status.readyReplicas)" 2 "ready replicas"; }
eventually 60 scaled
active() { equals "$(kubectl get hpa site-web -o 'jsonpath={.status.conditions[?(@.type=="ScalingActive")].reason}')" ValidMetricFound; }

say "== objects that were there before; a package; upgrade --install"
eventually 60 active &
waits_for_metrics=$!
kubectl create namespace plain >/dev/null
helm template other "$web" -n plain --set ingress.enabled=false --no-hooks --skip-tests | kubectl apply -n plain -f - >/dev/null
kubectl -n plain rollout status deployment/other-web --timeout=60s >/dev/null
helm package "$web" -d "$SCRATCH" >/dev/null
refused 'cannot be imported into the current release: invalid ownership metadata' \
  helm upgrade --install other "$SCRATCH/web-0.1.0.tgz" -n plain
helm upgrade --install other "$SCRATCH/web-0.1.0.tgz" -n plain --take-ownership --wait --timeout 60s --set ingress.enabled=false >/dev/null
contains "$(kubectl -n plain get service other-web -o 'jsonpath={.metadata.annotations}')" last-applied-configuration "kubectl's annotation"
helm template other "$web" -n plain --set greeting=applied,ingress.enabled=false --no-hooks --skip-tests | kubectl apply -n plain -f - >/dev/null
helm upgrade --install other "$web" -n plain --wait --timeout 60s --set greeting=helm >/dev/null
equals "$(kubectl -n plain get configmap other-web -o 'jsonpath={.data.greeting}')" helm "helm after kubectl apply"
equals "$(helm list -n plain -o json | jq -r '.[0].revision')" 2 "revision"
contains "$(helm upgrade --install other "$web" -n plain --set service.type=NodePort --set podAnnotations.a=b 2>&1)" "has been upgraded" "another upgrade"
helm uninstall other -n plain --wait --timeout 60s >/dev/null
eventually 20 left_are plain "configmap/other-web-installed configmap/other-web-kept"

say "== what is not a field of the kind"
cp -r "$web" "$SCRATCH/odd"
sed -i 's/^spec:/spec:\n  nonsense: true/' "$SCRATCH/odd/templates/service.yaml"
contains "$(helm upgrade site "$SCRATCH/odd" --reuse-values 2>&1)" 'unknown field "spec.nonsense"' "an unknown field"
sed -i 's/nonsense: true/ports: nothing/; s/^  ports:$/  externalIPs:/' "$SCRATCH/odd/templates/service.yaml"
refused "json: cannot unmarshal string into Go struct field ServiceSpec.spec.ports of type []v1.ServicePort" helm upgrade site "$SCRATCH/odd" --reuse-values

say "== releases near the limit of a Secret, and beyond"
sized() { # sized BYTES: the chart with a file that no compression makes smaller
  rm -rf "$SCRATCH/big" && cp -r "$CHARTS/database" "$SCRATCH/big"
  rm "$SCRATCH/big/templates/statefulset.yaml"
  head -c "$1" /dev/urandom >"$SCRATCH/big/files/random"
}
sized 740000
helm install big "$SCRATCH/big" >/dev/null
size=$(kubectl get secret sh.helm.release.v1.big.v1 -o 'jsonpath={.data.release}' | base64 -d | wc -c)
[ "$size" -gt 950000 ] && [ "$size" -le 1048576 ] || fail "the release has $size bytes"
helm upgrade big "$SCRATCH/big" --set password=one >/dev/null
helm rollback big 1 >/dev/null
equals "$(history_of big)" "superseded superseded deployed" "history of a big release"
contains "$(helm list -q | xargs)" big "helm list"
helm uninstall big >/dev/null
sized 900000
refused 'Too long: may not be more than 1048576 bytes' helm install big "$SCRATCH/big"

say "== uninstall"
wait "$waits_for_metrics" || fail "the autoscaler got no metrics: $(kubectl get hpa site-web -o yaml)"
contains "$(kubectl get hpa site-web --no-headers)" "%/50%" "the autoscaler"
helm uninstall site --keep-history --wait --timeout 60s >/dev/null
equals "$(helm list -o json | jq length) $(helm list --uninstalled -q)" "0 site" "a release whose history was kept"
equals "$(history_of site | wc -w)" 10 "helm's ten last revisions"
shows site-web-last kubectl get events -o 'jsonpath={.items[*].involvedObject.name}' # the hook before it went
helm rollback site 7 --wait --timeout 60s >/dev/null
says '"greeting": "hello"'
helm uninstall site --wait --cascade foreground --timeout 60s >"$SCRATCH/uninstalled"
contains "$(cat "$SCRATCH/uninstalled")" "[ConfigMap] site-web-kept" "what the policy keeps"
eventually 20 left_are shop "configmap/site-web-installed configmap/site-web-kept pod/site-web-test-connection"
kubectl delete namespace shop --timeout=60s >/dev/null
say "result: helm installed, upgraded, took back, rolled back and removed a web application, with hooks and tests"
