#!/usr/bin/env bash
# Issue 7: an MPIJob of kubeflow.org/v2beta1: real OpenMPI over real ssh, with a key that was made for the job, computes
# pi with two workers of two ranks; both versions of the kind live beside each other.
source "$(dirname "$0")/lib.sh"
SSHD=${SSHD:-$ROOT/build/tools/openssh/sshd}
[ -x "$SSHD" ] || skip "no sshd: run tests/tools/fetch-sshd"
command -v mpirun ssh >/dev/null || skip "no openmpi-bin or openssh-client"
/usr/bin/python3 -c 'import mpi4py' 2>/dev/null || skip "no python3-mpi4py"
up
SHARED=$SCRATCH/shared
mkdir -p "$SHARED" && chmod 755 "$SHARED"
cp -P "$(dirname "$SSHD")"/* "$SHARED/" # with libraries that a machine may lack
cp tests/live/mpi/pi.py "$SHARED"
# What an image for this does when it is built: a host key, a user for sshd, ssh that asks nobody.
cat >"$SHARED/worker.sh" <<'SH'
ssh-keygen -q -t ecdsa -N '' -f /tmp/host_key
grep -q ^sshd: /etc/passwd || echo 'sshd:x:74:65534::/run/sshd:/usr/sbin/nologin' >>/etc/passwd
mkdir -p /run/sshd
export LD_LIBRARY_PATH=/shared
exec /shared/sshd -De -f /dev/null -h /tmp/host_key -o StrictModes=no -o UsePAM=no
SH
job() { # job NAME POLICY
  cat <<YAML
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata: {name: $1}
spec:
  slotsPerWorker: 2
  launcherCreationPolicy: $2
  runPolicy: {cleanPodPolicy: Running}
  mpiReplicaSpecs:
    Launcher:
      replicas: 1
      template:
        spec:
          containers:
            - name: mpi-launcher
              image: none
              command: [mpirun, --allow-run-as-root, --oversubscribe, -mca, plm_rsh_args, -o StrictHostKeyChecking=no -o ConnectionAttempts=10,
                        -np, "4", python3, /shared/pi.py]
    Worker:
      replicas: 2
      template:
        spec:
          terminationGracePeriodSeconds: 1
          containers:
            - name: mpi-worker
              image: none
              command: [sh, /shared/worker.sh]
              readinessProbe: {tcpSocket: {port: 22}, periodSeconds: 1}
              volumeMounts: [{name: shared, mountPath: /shared}]
          volumes: [{name: shared, hostPath: {path: $SHARED, type: Directory}}]
YAML
}
says_pi() { contains "$(kubectl logs "$1-launcher")" \
  "pi is 3.141593, by 4 ranks on ['pi-worker-0', 'pi-worker-0', 'pi-worker-1', 'pi-worker-1']" "the launcher"; }

job pi WaitForWorkersReady | kubectl apply -f -
kubectl wait --for=condition=Succeeded mpijobs.v2beta1.kubeflow.org/pi --timeout=90s
says_pi pi
said=$(kubectl logs pi-launcher | grep '^pi is')
equals "$(kubectl get configmap pi-config -o 'jsonpath={.data.hostfile}')" \
  $'pi-worker-0.pi.default.svc slots=2\npi-worker-1.pi.default.svc slots=2' hostfile
equals "$(kubectl get secret pi-ssh -o 'jsonpath={.type}')" kubernetes.io/ssh-auth "the key's type"
kubectl wait --for=delete pod/pi-worker-0 pod/pi-worker-1 --timeout=30s
# One object in two versions, run as the one that it was made in.
equals "$(kubectl get mpijobs.v1.kubeflow.org pi -o 'jsonpath={.apiVersion} {.spec.mpiImplementation}')" \
  "kubeflow.org/v1 OpenMPI" "the job in the other version"
kubectl annotate mpijobs.v1.kubeflow.org pi note=x
equals "$(kubectl get mpijobs.v2beta1.kubeflow.org pi -o 'jsonpath={.spec.launcherCreationPolicy}')" WaitForWorkersReady \
  "what the other version's write keeps"
contains "$("$MUSTER" explain job pi)" "MPIJob pi succeeded" "muster explain job"
kubectl delete mpijob pi
kubectl wait --for=delete secret/pi-ssh service/pi configmap/pi-config --timeout=30s

# At once: ssh tries again until the workers answer.
job pi AtStartup | kubectl apply -f -
kubectl wait --for=condition=Succeeded mpijobs.v2beta1.kubeflow.org/pi --timeout=120s
says_pi pi
say "result: $said, over ssh"
