#!/usr/bin/env bash
# Scratch space: requests decide where a pod fits, limits are held: emptyDir, layer and log together, the size of an emptyDir, each
# container's own. Who is above is evicted with upstream's words; who keeps the limits stays.
source "$(dirname "$0")/../lib.sh"
up_machine --simulate-nodes 1
kubectl cordon "$(real_node)"
kubectl apply -f "$EXAMPLE"
eventually 20 pod_phase_is scratch Running
equals "$(node_of scratch)" simulated-0000 "node at the article's size"
sed 's/name: scratch$/name: too-much/; s/50Gi/2Ti/; s/100Gi/2Ti/' "$EXAMPLE" | kubectl apply -f -
eventually 10 waits_for too-much "Insufficient ephemeral-storage"
kubectl delete pod too-much scratch --wait >/dev/null
kubectl uncordon "$(real_node)"
kubectl delete node simulated-0000

pod() { # pod NAME PROGRAM [SED]
  sed -E "s/^  name: scratch\$/  name: $1/; s/50Gi/1Mi/; s/100Gi/8Mi/; s#\"sleep\", \"1000\"#\"sh\", \"-c\", \"$2; sleep 1000\"#; ${3-}" "$EXAMPLE" |
    kubectl apply -f -
}
write() { printf 'head -c %sM /dev/zero >%s' "$1" "$2"; }
pod keeps "$(write 4 /scratch/a); $(write 1 /tmp/b)"
pod together "$(write 5 /scratch/a); $(write 5 /var/b)"
pod logs "yes some line of a log | head -c 12000000"
pod volume "$(write 4 /scratch/a)" 's/emptyDir: .*/emptyDir: {sizeLimit: 2Mi}/'
for name in together logs volume; do
  eventually 40 pod_phase_is $name Failed
  equals "$(jsonpath pod/$name .status.reason)" Evicted "$name"
done
for name in together logs; do
  equals "$(jsonpath pod/$name .status.message)" "Pod ephemeral local storage usage exceeds the total limit of containers 8192Ki. " "$name"
done
equals "$(jsonpath pod/volume .status.message)" 'Usage of EmptyDir volume "scratch" exceeds the limit "2Mi". '
eventually 30 has_event together Evicted "exceeds the total limit of containers"
equals "$(jsonpath pod/keeps .status.phase)" Running "the pod that keeps its limits"
