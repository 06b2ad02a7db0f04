# Sourced by parts of tests/live/user.sh.
# rendezvous_job NAME SCRIPT GATE [CONTAINER-FIELDS [POD-FIELDS]]: a job of two ranks that run rendezvous.py.
rendezvous_job() {
  cat <<YAML
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: $1}
spec:
  runPolicy: {cleanPodPolicy: None}
  pytorchReplicaSpecs:
    Master: &replica
      replicas: 1
      restartPolicy: Never
      template:
        spec:
          containers: [{name: pytorch, image: none, command: ["python3", "$2", "$3"]${4:+, $4}}]
          ${5-}
    Worker: *replica
YAML
}
