#!/usr/bin/env bash
# JobSets through stock kubectl on a real node: a leader and two workers find each other by their host names and finish;
# a set whose Job fails begins anew; suspend and resume, one after another; a gang waits as a whole; what is deleted leaves
# nothing.
source "$(dirname "$0")/lib.sh"
up --simulate-gpus 2

# Pods meet in a directory of the host that they mount: no timing in this test.
mkdir -p "$SCRATCH/gate" && chmod 777 "$SCRATCH/gate"

replicated_job() { # replicated_job NAME PODS COMMAND [MORE]: reads no input
  cat <<YAML
    - name: $1
${4:-}
      template:
        spec:
          parallelism: $2
          completions: $2
          backoffLimit: 0
          template:
            spec:
              restartPolicy: Never
              terminationGracePeriodSeconds: 1
              volumes: [{name: gate, hostPath: {path: $SCRATCH/gate, type: Directory}}]
              containers:
                - name: main
                  image: none
                  command: ["sh", "-c", "$3"]
                  volumeMounts: [{name: gate, mountPath: /gate}]
YAML
}
job_set() { # job_set NAME [SPEC [ANNOTATIONS]]: with the replicated jobs of its input
  printf 'apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: %s, annotations: {%s}}\n' "$1" "${3:-}"
  printf 'spec:\n%s\n  replicatedJobs:\n' "${2:-}"
  cat
}
condition() { kubectl get jobset "$1" -o "jsonpath={.status.conditions[?(@.type==\"$2\")].status}"; }
condition_is() { equals "$(condition "$1" "$2")" "$3" "condition $2 of $1"; }
attempts_of() { kubectl get jobs -l "jobset.sigs.k8s.io/jobset-name=$1" -o 'jsonpath={.items[*].metadata.labels.jobset\.sigs\.k8s\.io/restart-attempt}'; }
phase_is() { equals "$(kubectl get pods -l "jobset.sigs.k8s.io/jobset-name=$1" -o 'jsonpath={.items[*].status.phase}')" "$2" "phases of $1"; }

contains "$(kubectl explain jobset.spec.failurePolicy)" "maxRestarts" "kubectl explain"
contains "$(kubectl api-resources --api-group=jobset.x-k8s.io --no-headers)" "jobsets" "api-resources"

# All know each other's names before any of them ends.
meet='for peer in leader-0-0 workers-0-0 workers-0-1; do until getent hosts pair-$peer.pair; do sleep 0.1; done; done;
  touch /gate/$(uname -n); for peer in leader-0-0 workers-0-0 workers-0-1; do until [ -e /gate/pair-$peer ]; do sleep 0.1; done; done'
meet=${meet//$'\n'/}
{ replicated_job leader 1 "$meet"; replicated_job workers 2 "$meet"; } |
  job_set pair '  coordinator: {replicatedJob: leader}' | kubectl apply -f -
kubectl wait --for=condition=Completed jobset/pair --timeout=120s
contains "$(kubectl get jobset pair --no-headers)" "Completed" "kubectl get"
shows "AllJobsCompleted" kubectl describe jobset pair
equals "$(kubectl get job pair-workers-0 -o 'jsonpath={.spec.template.metadata.annotations.jobset\.sigs\.k8s\.io/coordinator}')" \
  pair-leader-0-0.pair coordinator
say "met: $(ls "$SCRATCH/gate" | tr '\n' ' ')"

# The first attempt of one of two fails; both begin anew.
once='if [ -e /gate/failed ]; then exit 0; fi; touch /gate/failed; exit 1'
{ replicated_job flaky 1 "$once"; replicated_job steady 1 'until [ -e /gate/failed ]; do sleep 0.1; done'; } |
  job_set again '  failurePolicy: {maxRestarts: 1, restartStrategy: BlockingRecreate}' | kubectl apply -f -
kubectl wait --for=condition=Completed jobset/again --timeout=120s
equals "$(jsonpath jobset/again .status.restarts)" 1 "restarts of again"
equals "$(attempts_of again)" "1 1" "attempts of the Jobs"
shows RestartJobSetFailurePolicyAction kubectl get events --field-selector involvedObject.name=again -o 'jsonpath={.items[*].reason}'

# None is left to begin anew: the set fails, and the other Job ends.
{ replicated_job bad 1 'exit 1'; replicated_job endless 1 'sleep 10000'; } | job_set lost | kubectl apply -f -
kubectl wait --for=condition=Failed jobset/lost --timeout=120s
gone() { ! kubectl get job "$1" >/dev/null 2>&1; }
eventually 60 gone lost-endless-0

# A suspended set has no pods; resumed, the second kind waits until the first has succeeded.
{ replicated_job first 1 'until [ -e /gate/go ]; do sleep 0.1; done'
  replicated_job second 1 'test -e /gate/go' '      dependsOn: [{name: first, status: Complete}]'; } |
  job_set stages '  suspend: true' | kubectl apply -f -
eventually 30 condition_is stages Suspended True
phase_is stages ""
# Whoever lets it run says where: before it has ever run, and after.
suspend() { kubectl patch jobset stages --type=merge -p "{\"spec\": {\"suspend\": $1}}" >/dev/null; }
direct() { # direct FIELD VALUE: of the pods of the first replicated job
  kubectl patch jobset stages --type=json \
    -p "[{\"op\": \"add\", \"path\": \"/spec/replicatedJobs/0/template/spec/template/$1\", \"value\": $2}]" >/dev/null
}
direct spec/nodeSelector '{"kubernetes.io/os": "linux"}'
suspend false
eventually 60 phase_is stages Running
equals "$(jsonpath job/stages-first-0 '.spec.template.spec.nodeSelector.kubernetes\.io/os')" linux "node selector of the Job"
suspend true
eventually 60 phase_is stages ""
direct metadata '{"labels": {"round": "2"}}'
suspend false
eventually 60 phase_is stages Running
equals "$(kubectl get pods -l round=2 -o name | wc -l)" 1 "pods with the new label"
condition_is stages Suspended False
gone stages-second-0 || fail "the second Job did not wait for the first"
touch "$SCRATCH/gate/go"
kubectl wait --for=condition=Completed jobset/stages --timeout=120s

# Three pods with a GPU each, of two that are there: a gang waits as a whole, and three for themselves run in turn.
with_gpu() { sed 's|^                  image: none|&\n                  resources: {limits: {nvidia.com/gpu: 1}}|'; }
replicated_job all 3 true | with_gpu | job_set whole '' 'muster.dev/gang: "true"' | kubectl apply -f -
pods_of() { kubectl get pods -l "jobset.sigs.k8s.io/jobset-name=$1" -o "jsonpath={.items[*]$2}"; }
waits_for_gpus() { contains "$(pods_of whole '.status.conditions[?(@.type=="PodScheduled")].message')" nvidia.com/gpu reason; }
eventually 60 waits_for_gpus
replicated_job each 3 true | with_gpu | job_set loose | kubectl apply -f -
kubectl wait --for=condition=Completed jobset/loose --timeout=120s
equals "$(pods_of whole .spec.nodeName)" "" "nodes of the gang"
equals "$(pods_of whole .metadata.name | wc -w)" 3 "pods of the gang"
equals "$(jsonpath podgroup.scheduling.volcano.sh/whole .spec.minMember)" 3 minMember

# Each Job has a node for itself: on the one that is there they run one after another.
replicated_job turn 2 'sleep 2' '      replicas: 2' |
  job_set alone '' 'alpha.jobset.sigs.k8s.io/exclusive-topology: kubernetes.io/hostname' | kubectl apply -f -
kubectl wait --for=condition=Completed jobset/alone --timeout=120s
times() { kubectl get pods -l "job-name=$1" -o "jsonpath={.items[*].status.containerStatuses[0].state.terminated.$2}" | tr ' ' '\n' | sort; }
before() { # before JOB JOB: all pods of the first had ended when those of the second began
  [[ ! "$(times "$1" finishedAt | tail -n 1)" > "$(times "$2" startedAt | head -n 1)" ]]
}
for job in alone-turn-0 alone-turn-1; do equals "$(times $job finishedAt | wc -l)" 2 "ended pods of $job"; done
before alone-turn-0 alone-turn-1 || before alone-turn-1 alone-turn-0 || fail "two Jobs shared a node: $(kubectl get pods -o wide)"

# Bad input says what would be right.
wrong=$(replicated_job a 1 true '      dependsOn: [{name: b, status: Ready}]' | job_set wrong | kubectl apply -f - 2>&1) && fail "accepted"
contains "$wrong" "DependsOn can't be set for the first ReplicatedJob" "refusal"

kubectl delete jobset --all --timeout=60s >/dev/null
nothing_left() {
  equals "$(kubectl get jobs,pods -o name)" "" "what is left" && equals "$(kubectl get services -o name)" service/kubernetes services
}
eventually 60 nothing_left
say "result: leader and workers met by name, a failed set began anew once, stages ran in turn, a gang waited whole, nothing is left"
