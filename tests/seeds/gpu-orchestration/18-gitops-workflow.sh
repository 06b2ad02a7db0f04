#!/usr/bin/env bash
# "ArgoCD and Flux", "GitOps Workflow": a job that is committed and pushed trains, what is changed by hand is put back, what is
# taken out of the repository goes, and the results are in the repository.
source "$(dirname "$0")/../lib.sh"
command -v git >/dev/null || skip "no git (tools/install-packages test)"

up_machine
export GIT_CONFIG_GLOBAL=$HOME/.gitconfig
git config --global user.name tester && git config --global user.email tester@localhost
git init -q --bare -b main "$SCRATCH/jobs.git"
git clone -q "$SCRATCH/jobs.git" "$SCRATCH/work" 2>/dev/null
work() { git -C "$SCRATCH/work" "$@"; }
mkdir "$SCRATCH/work/training"
cat >"$SCRATCH/work/training/job.yaml" <<'YAML'
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: digits}
spec:
  pytorchReplicaSpecs:
    Master:
      replicas: 1
      restartPolicy: OnFailure
      template:
        spec:
          containers: [{name: pytorch, image: none, command: [sh, -c, "echo trained"]}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {rate: "0.1"}
YAML
push() { work add -A && work commit -qm "$1" && work push -q origin HEAD:main; }
push "Train new model with latest data"

muster sync "$SCRATCH/jobs.git" training --prune --push --interval 1s >"$SCRATCH/sync.log" 2>&1 &
syncer=$!
told() { grep -qF -- "$1" "$SCRATCH/sync.log"; }
eventually 120 told "pytorchjob.kubeflow.org/digits created"
told ": Train new model with latest data" || fail "no commit in: $(cat "$SCRATCH/sync.log")"
eventually 120 job_is digits Succeeded

# The result is published back, beside the commit.
note() { work fetch -q origin +refs/notes/muster:refs/notes/muster && work log -1 --notes=muster; }
published() { note | grep -qF "pytorchjobs/digits: Succeeded"; }
eventually 120 published
say "$(note)"

# Somebody changes the cluster by hand.
kubectl patch configmap settings --type merge -p '{"data":{"rate":"9"}}' >/dev/null
eventually 120 told 'configmap/settings had drifted: data.rate: "9" -> "0.1"'
equals "$(jsonpath configmap/settings .data.rate)" 0.1 "what the repository says"

# A commit that is wrong says where, changes nothing, and the next one mends it.
printf -- '---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: more}\ndatas: {}\n' >>"$SCRATCH/work/training/job.yaml"
push "misspelled"
eventually 120 told 'training/job.yaml, document 3: ConfigMap more: '
told 'unknown field "datas"' || fail "the field is not named: $(cat "$SCRATCH/sync.log")"
kubectl get pytorchjob digits >/dev/null

# What is no longer there goes, and with the job its pods; nothing else does.
kubectl create configmap mine --from-literal=a=b >/dev/null
printf 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {rate: "0.2"}\n' >"$SCRATCH/work/training/job.yaml"
push "done with digits"
eventually 120 told "pytorchjobs/digits pruned"
no_pods() { [ -z "$(kubectl get pods -o name)" ]; }
eventually 120 no_pods
rate_is() { [ "$(jsonpath configmap/settings .data.rate)" = "$1" ]; }
eventually 120 rate_is 0.2
kubectl get configmap mine >/dev/null
kill "$syncer"
say "result: commit, train, results back; drift; faults; prune"
