#!/usr/bin/env bash
# Issue 6: a database's chart through stock helm: its data and its password outlive upgrades, a version that does not come up,
# rollback and even the release; with its claim the volume goes.
source "$(dirname "$0")/lib.sh"
source "$(dirname "$0")/charts/lib.sh"
up
chart=$CHARTS/database
in_namespace data

password() { kubectl get secret db -o 'jsonpath={.data.password}' | base64 -d; }
ask() { # ask PATH [CURL-ARGUMENTS]: the database, by the name of its Service, from its first pod
  kubectl exec db-0 -c database -- curl -sS -m 10 -H "X-Password: $(password)" "http://db:5432$1" "${@:2}"
}
volume() { jsonpath "pvc/$1" .spec.volumeName; }

say "== install: a volume, a password"
helm install db "$chart" --create-namespace --wait --timeout 60s >/dev/null
equals "$(jsonpath statefulset/db .status.readyReplicas) $(jsonpath pvc/data-db-0 .status.phase)" "1 Bound" "after --wait"
equals "$(jsonpath pvc/data-db-0 .spec.storageClassName)" local-path "the default class"
first=$(password)
equals ${#first} 24 "length of the password"
ask /color -X PUT -d blue
equals "$(ask /color)" blue "what was written"
equals "$(kubectl exec db-0 -c database -- curl -s -H 'X-Password: guess' http://db:5432/color)" "wrong password" "a wrong password"
folder=$DATA/local-volumes/$(volume data-db-0)_data_data-db-0
[ -s "$folder/tables/table.db" ] || fail "no table in $folder"
equals "$(stat -c '%u %g' "$folder/tables/table.db")" "65534 20000" "whose the table is: fsGroup's, though it is not the program's own group"
equals "$(kubectl exec db-0 -c database -- stat -Lc '%a %g' /secret/password)" "440 20000" "the password's file"

say "== upgrade: the same password and data"
contains "$(helm upgrade db "$chart" --dry-run=server)" "password: \"$(printf %s "$first" | base64)\"" "lookup in a dry run"
helm upgrade db "$chart" --set flavor=sweet --wait --timeout 60s >/dev/null
equals "$(password)" "$first" "the password after the upgrade"
equals "$(ask /color)" blue "data after the upgrade"
equals "$(ask /starts)" "plain sweet" "starts"
helm upgrade db "$chart" --reuse-values --set replicaCount=2 --wait --timeout 60s >/dev/null
equals "$(jsonpath statefulset/db .status.readyReplicas) $(jsonpath pvc/data-db-1 .status.phase)" "2 Bound" "a second replica"
contains "$(kubectl exec db-0 -c database -- curl -s -m 10 -H "X-Password: $first" http://db-1.db-headless:5432/starts)" sweet \
  "the second replica by its own name"

say "== what a StatefulSet does not allow; a version that does not come up"
refused 'updates to statefulset spec for fields other than' helm upgrade db "$chart" --reuse-values --set persistence.size=32Mi
equals "$(history_of db)" "superseded superseded deployed failed" "history"
refused 'context deadline exceeded' helm upgrade db "$chart" --set startup=never --wait --timeout 5s
equals "$(release db .info.status)" failed "a release that did not come up"
helm rollback db 2 >/dev/null
# As upstream, a pod in order that never gets ready holds the rollout until somebody deletes it.
kubectl delete pod db-0 --wait=false >/dev/null
kubectl rollout status statefulset/db --timeout=60s >/dev/null
equals "$(jsonpath statefulset/db '.spec.replicas')" 1 "replicas after rollback"
equals "$(password) $(ask /color)" "$first blue" "password and data after rollback"
equals "$(ask /starts | awk '{print $NF}')" sweet "the version after rollback"
only_first() { equals "$(kubectl get pods -l app.kubernetes.io/instance=db -o name)" pod/db-0 "pods"; }
eventually 30 only_first
equals "$(jsonpath pvc/data-db-1 .status.phase)" Bound "the claim of a replica that is gone"

say "== uninstall keeps the data, and the next release finds it"
ask /color -X PUT -d green
helm uninstall db --wait --timeout 60s >/dev/null
eventually 20 left_are data "persistentvolumeclaim/data-db-0 persistentvolumeclaim/data-db-1"
helm install db "$chart" --wait --timeout 60s --set password=secret >/dev/null
equals "$(password) $(ask /color)" "secret green" "a new release over the same claim"
helm upgrade db "$chart" --wait --timeout 60s >/dev/null
equals "$(password)" secret "a given password is kept, too"

say "== without its claim the volume goes"
gone=$(volume data-db-0)
helm uninstall db --wait --timeout 60s >/dev/null
kubectl delete pvc -l app.kubernetes.io/instance=db --timeout=60s >/dev/null
eventually 30 is_gone "pv/$gone"
no_folders() { equals "$(ls -A "$DATA/local-volumes")" "" "folders of volumes"; }
eventually 30 no_folders
eventually 20 left_are data ""
say "result: a database's data and password outlived upgrades, rollback and the release; with the claim its volume went"
