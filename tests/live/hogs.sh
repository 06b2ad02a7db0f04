#!/usr/bin/env bash
# Issue 3, item 7: pods that take all they can get (processes, memory, log, descriptors, inodes, time) harm only themselves.
source "$(dirname "$0")/lib.sh"
up --pod-max-pids 200

pod() { # pod NAME PROGRAM [MORE_OF_THE_CONTAINER]: `python3 -c PROGRAM`, never restarted
  python3 - "$1" "$2" "${3:-{\}}" <<'PY' | kubectl apply -f - >/dev/null
import json, sys
name, program, more = sys.argv[1:]
container = {"name": "main", "image": "none", "command": ["python3", "-uc", program], **json.loads(more),
             "volumeMounts": [{"name": "work", "mountPath": "/work"}]}
print(json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {
    "restartPolicy": "Never", "terminationGracePeriodSeconds": 1, "containers": [container],
    "volumes": [{"name": "work", "emptyDir": {"sizeLimit": "20Mi"} if name == "volume" else {}}]}}))
PY
}
logged() { kubectl logs "$1" | grep -q "$2"; }
ended() { [[ $(jsonpath "pod/$1" .status.phase) =~ ^(Succeeded|Failed)$ ]]; }
exit_code() { jsonpath "pod/$1" '.status.containerStatuses[0].state.terminated.exitCode'; }

pod bystander 'import time
n = 0
while True: n += 1; print("alive", n); time.sleep(0.1)'
eventually 30 logged bystander 'alive 3'

pod forks 'import os, time
n = 0
try:
    while True:
        if os.fork() == 0: time.sleep(1000)
        n += 1
except OSError as error: print("stopped after", n, error)
time.sleep(1000)'
pod memory 'x = []
while True: x.append(bytearray(1 << 20))' '{"resources": {"limits": {"memory": "64Mi"}}}'
pod flood 'import sys
line = "x" * 199 + "\n"
for i in range(400000): sys.stdout.write(line)
print("flooded")
import time; time.sleep(1000)'
pod descriptors 'import ctypes, os, resource, time
libc = ctypes.CDLL(None)
n = 0
while n < 10000 and libc.inotify_init() >= 0: n += 1
print("inotify instances:", n)
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 100000), hard))
try:
    while True: os.open("/dev/null", 0)
except OSError as error: print("no more descriptors", error)
time.sleep(1000)'
pod zombies 'import os, time
for i in range(50):
    if os.fork() == 0: os._exit(0)
print("zombies"); time.sleep(1000)'
pod stubborn 'import signal, time
for number in range(1, 32):
    try: signal.signal(number, signal.SIG_IGN)
    except OSError: pass
print("ignoring"); time.sleep(1000)'
pod silent 'import os, sys, time
os.close(1); os.close(2); time.sleep(0.2); os._exit(3)'
pod unbroken 'import sys
sys.stdout.write("y" * 5000000); sys.stdout.flush(); sys.exit(4)'
pod deep 'import os
os.chdir("/work")
os.symlink("loop", "loop"); os.symlink(".", "self")
for i in range(3000): os.mkdir("d"); os.chdir("d"); open("f", "w").close()
print("deep")
import time; time.sleep(1000)'

fill='import time
with open("DIR/filler", "wb") as file:
    for i in range(60): file.write(bytes(1 << 20)); file.flush()
print("filled"); time.sleep(1000)'
pod volume "${fill/DIR//work}"
pod layer "${fill/DIR//opt}" '{"resources": {"limits": {"ephemeral-storage": "30Mi"}}}'

eventually 120 logged forks 'stopped after'
taken=$(kubectl logs forks | grep -o 'after [0-9]*' | grep -o '[0-9]*')
[ "$taken" -gt 100 ] && [ "$taken" -lt 200 ] || fail "the fork bomb had $taken children, --pod-max-pids is 200"
eventually 120 ended memory
equals "$(exit_code memory) $(jsonpath pod/memory '.status.containerStatuses[0].state.terminated.reason')" "137 OOMKilled" "memory hog"
eventually 120 ended silent
equals "$(exit_code silent)" 3 "exit code without stdout"
eventually 120 ended unbroken
equals "$(exit_code unbroken) $(kubectl logs unbroken | wc -c)" "4 5000001" "a line of 5 MB and its newline"
eventually 120 logged descriptors 'no more descriptors'
eventually 120 logged zombies zombies
eventually 120 logged deep deep
eventually 120 logged stubborn ignoring

# 80 MB were written; five files of 10 MB stay, and the newest lines.
eventually 120 logged flood flooded
size=$(du -sm "$DATA"/logs/pods/default_flood_* | cut -f1)
[ "$size" -le 52 ] || fail "logs of the flood take $size MB, at most 52"

# Above their own limits on the disk: evicted, with what they wrote.
for name in volume layer; do
  eventually 120 ended $name
  equals "$(jsonpath pod/$name .status.reason)" Evicted "reason of pod $name"
done
contains "$(jsonpath pod/volume .status.message)" 'Usage of EmptyDir volume "work" exceeds the limit "20Mi".'
contains "$(jsonpath pod/layer .status.message)" 'ephemeral local storage usage exceeds the total limit of containers'
equals "$(jsonpath pod/layer '.status.conditions[?(@.type=="DisruptionTarget")].reason')" TerminationByKubelet

# The hogs are there: the API answers, a new pod runs, logs are followed, the bystander never stopped.
pod after 'print("after the hogs")'
kubectl wait --for=jsonpath='{.status.phase}'=Succeeded pod/after --timeout=60s
equals "$(kubectl logs -f after)" "after the hogs"
equals "$(jsonpath pod/bystander .status.phase) $(jsonpath pod/bystander '.status.containerStatuses[0].restartCount')" "Running 0"
kubectl logs bystander | awk '{ if ($2 != NR) exit 1 } END { if (NR < 5) exit 1 }' || fail "the bystander's log has a gap"
equals "$(jsonpath "$(kubectl get nodes -o name | head -1)" '.status.conditions[?(@.type=="Ready")].status')" True "the node is Ready"

# Out of memory the kernel takes pods first, then shims, then us; who enters a container counts as the container.
equals "$(kubectl exec bystander -- cat /proc/self/oom_score_adj)" 1000 "oom_score_adj of a command in a pod"
wanted=-999
sh -c 'echo -999 >/proc/self/oom_score_adj' 2>/dev/null || wanted=0 # this machine gives nobody a lower score
equals "$(cat "/proc/$(control_plane_pid)/oom_score_adj")" $wanted "oom_score_adj of muster"

kubectl delete pod forks memory flood descriptors zombies stubborn silent unbroken deep after volume layer --timeout=120s >/dev/null
nothing_left() { [ "$(ls "$DATA/pods" | wc -l)" = 1 ] && [ "$(ls "$DATA/logs/pods" | wc -l)" = 1 ]; }
eventually 120 nothing_left
say "result: hogs: fork bomb stopped at $taken of 200, memory hog OOMKilled, 80 MB of log kept as $size MB; oom_score_adj of muster $wanted; others unharmed, nothing left"
