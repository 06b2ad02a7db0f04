#!/usr/bin/env bash
# Issue 6: an operator's chart through stock helm: CRDs that helm makes and never changes, roles, a controller in a pod that
# reconciles its resource, webhooks with an authority of the chart's own; a chart of such resources; what stays when the operator goes.
source "$(dirname "$0")/lib.sh"
source "$(dirname "$0")/charts/lib.sh"
/usr/bin/python3 -c 'import kubernetes' 2>/dev/null || skip "python3-kubernetes is not installed (tools/install-packages test)"
up
chart=$CHARTS/operator
in_namespace operators

page() { # page NAME TEXT [MORE]
  kubectl apply -f - <<YAML
apiVersion: demo.example.com/v1
kind: Page
metadata: {name: $1, namespace: default}
spec: {text: $2${3:-}}
YAML
}
of_page() { kubectl -n default get "$1" -o "jsonpath=$2"; }
ready() { equals "$(of_page page/home '{.status.conditions[0].status} {.status.observedGeneration} {.status.replicas}')" "True $1 $2" "page"; }

say "== install: the kind is there before what is made of it"
helm install pages "$chart" --create-namespace --wait --timeout 60s >/dev/null
equals "$(kubectl get crd pages.demo.example.com -o 'jsonpath={.status.conditions[?(@.type=="Established")].status}')" True "the CRD"
equals "$(helm get manifest pages | grep -c CustomResourceDefinition || true)" 0 "CRDs in the manifest"
page home hello >/dev/null
eventually 60 ready 1 1
equals "$(of_page configmap/page-home '{.data.text}')" hello "what the controller made"
contains "$(kubectl -n default get pages)" "READY" "columns"
shows "1 of 1 pods are available" kubectl -n default get events -o 'jsonpath={.items[*].message}'
refused 'spec.text: Required value' kubectl apply -f - <<<'apiVersion: demo.example.com/v1
kind: Page
metadata: {name: empty}
spec: {replicas: 1}'
refused 'should be less than or equal to 5' page many much ', replicas: 6'
kubectl -n default scale page/home --replicas=2 >/dev/null
eventually 60 ready 2 2
equals "$(kubectl auth can-i create pages.demo.example.com --as=system:serviceaccount:operators:pages -n default || true)" no "rights"
kubectl create rolebinding editors --clusterrole=edit --serviceaccount=operators:default >/dev/null
may_edit() { equals "$(kubectl auth can-i create pages.demo.example.com --as=system:serviceaccount:operators:default || true)" yes "an editor"; }
eventually 10 may_edit

say "== its webhooks, whose authority the chart made"
equals "$(of_page page/home '{.metadata.labels.demo\.example\.com/checked}')" yes "what the webhook added"
refused 'admission webhook "validate.pages.demo.example.com" denied the request: spec.text: nobody shall read a secret' page home secret
refused 'denied the request' kubectl -n default patch page home --type=merge -p '{"spec": {"text": "a secret"}}'
ca() { kubectl get validatingwebhookconfiguration pages -o 'jsonpath={.webhooks[0].clientConfig.caBundle}'; }
first=$(ca)
equals "$first" "$(kubectl get secret pages-webhook -o 'jsonpath={.data.ca\.crt}')" "the authority"

say "== upgrade of the operator"
old=$(kubectl get pods -l app.kubernetes.io/instance=pages -o name)
helm upgrade pages "$chart" --set logLevel=debug --wait --timeout 60s >/dev/null
new=$(kubectl get pods -l app.kubernetes.io/instance=pages --field-selector status.phase=Running -o name)
[ "$old" != "$new" ] || fail "the pod is still $old"
equals "$(ca)" "$first" "the authority after the upgrade"
contains "$(kubectl logs "$new" -c manager)" "level debug as ${new#pod/}" "log of the new pod"
page home goodbye >/dev/null
changed() { equals "$(of_page configmap/page-home '{.data.text}') $(of_page deployment/page-home '{.spec.template.spec.containers[0].env[0].value}')" "goodbye goodbye"; }
eventually 30 changed
helm rollback pages 1 --wait --timeout 60s >/dev/null
equals "$(kubectl get pods -l app.kubernetes.io/instance=pages -o 'jsonpath={.items[*].spec.containers[0].env[0].value}')" info "rolled back"

say "== helm does not change CRDs; whoever applies them does"
cp -r "$chart" "$SCRATCH/next"
sed -i 's/^                text: .*/&\n                color: {type: string, default: blue}/' "$SCRATCH/next/crds/pages.yaml"
helm upgrade pages "$SCRATCH/next" --wait --timeout 60s >/dev/null
contains "$(page home again ', color: red' 2>&1 || true)" 'unknown field "spec.color"' "a field of the next version"
helm show crds "$SCRATCH/next" | kubectl apply -f - >/dev/null 2>&1
page home again ', color: red' >/dev/null
equals "$(of_page page/home '{.spec.color}')" red "a field of the next version"

say "== a chart of such resources"
mkdir -p "$SCRATCH/site/templates"
printf 'apiVersion: v2\nname: site\nversion: 0.1.0\n' >"$SCRATCH/site/Chart.yaml"
cat >"$SCRATCH/site/templates/page.yaml" <<'YAML'
{{- if .Capabilities.APIVersions.Has "demo.example.com/v1/Page" }}
apiVersion: demo.example.com/v1
kind: Page
metadata:
  name: {{ .Release.Name }}
spec:
  text: {{ .Values.text }}
  replicas: 1
{{- if .Values.color }}
  color: {{ .Values.color }}
{{- end }}
{{- end }}
YAML
helm install front "$SCRATCH/site" -n default --set text=one,color=green --wait >/dev/null
kubectl -n default wait --for=condition=Ready page/front --timeout=60s >/dev/null
helm upgrade front "$SCRATCH/site" -n default --set text=two >/dev/null
equals "$(of_page page/front '{.spec.text} {.spec.color} {.status.conditions[0].status}')" "two blue True" "after the upgrade"
helm rollback front 1 -n default >/dev/null
equals "$(of_page page/front '{.spec.text} {.spec.color}')" "one green" "after rollback"
refused 'denied the request' helm upgrade front "$SCRATCH/site" -n default --set text=secret
equals "$(helm status front -n default -o json | jq -r .info.status) $(of_page page/front '{.spec.text}')" "failed one" "after a refusal"
helm uninstall front -n default --wait --timeout 30s >/dev/null
owned_gone() { equals "$(kubectl -n default get deployments,configmaps,pods -l page=front -o name)" "" "what the page owned"; }
eventually 30 owned_gone

say "== uninstall: the kind and its objects stay"
helm uninstall pages --wait --timeout 60s >/dev/null
eventually 20 left_are operators "rolebinding.rbac.authorization.k8s.io/editors"
equals "$(kubectl get clusterroles,clusterrolebindings,validatingwebhookconfigurations,mutatingwebhookconfigurations -l app.kubernetes.io/instance=pages -o name)" "" "roles and webhooks"
equals "$(of_page page/home '{.spec.text}')" again "a page without its operator"
helm install pages "$chart" --skip-crds --wait --timeout 60s >/dev/null
kubectl -n default delete page home --timeout=30s >/dev/null
home_gone() { equals "$(kubectl -n default get deployments,configmaps,pods -l page=home -o name)" "" "what the page owned"; }
eventually 30 home_gone
helm uninstall pages --wait --timeout 60s >/dev/null
kubectl delete crd pages.demo.example.com --timeout=30s >/dev/null
refused 'NotFound' kubectl get pages -o name
say "result: an operator with webhooks came, was upgraded, rolled back and went by helm; its resource was reconciled and stayed"
