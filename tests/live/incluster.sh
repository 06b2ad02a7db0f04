#!/usr/bin/env bash
# A program in a pod asks the API server with the token that the pod was given, as clients do by themselves: Python's
# load_incluster_config. With a role it lists pods, without it gets 403; an expired or foreign token gets 401.
source "$(dirname "$0")/lib.sh"
/usr/bin/python3 -c 'import kubernetes' 2>/dev/null || skip "python3-kubernetes is not installed (tools/install-packages test)"
up

# A namespace and what needs its account, in one go.
kubectl apply -f - <<YAML >/dev/null
apiVersion: v1
kind: Namespace
metadata: {name: work}
---
apiVersion: v1
kind: Pod
metadata: {name: client, namespace: work}
spec:
  initContainers:
  - {name: before, image: none, command: [test, -s, /var/run/secrets/kubernetes.io/serviceaccount/token]}
  containers:
  - {name: main, image: none, command: [sleep, infinity]}
---
apiVersion: v1
kind: Pod
metadata: {name: without, namespace: work}
spec:
  automountServiceAccountToken: false
  containers:
  - {name: main, image: none, command: [sleep, infinity]}
YAML
running() { [ "$(kubectl -n work get pod "$1" -o 'jsonpath={.status.phase}')" = Running ]; }
eventually 60 running client
eventually 60 running without

folder=/var/run/secrets/kubernetes.io/serviceaccount
inside() { kubectl -n work exec -i -c main client -- "$@"; }
equals "$(inside cat $folder/namespace)" work "the namespace in the pod"
equals "$(inside cat $folder/ca.crt)" "$(cat "$DATA/pki/ca.crt")" "the CA in the pod"
inside touch $folder/mine 2>/dev/null && fail "the folder with the token is writable"
kubectl -n work exec without -- test -e $folder && fail "a token that the pod did not want"

# list [TOKEN] [NAMESPACE]: the names of the pods, or the status of the refusal.
list() { inside /usr/bin/python3 - "${1:-}" "${2:-work}" <<'PY'
import sys
import kubernetes
kubernetes.config.load_incluster_config()
api = kubernetes.client.CoreV1Api()
if sys.argv[1]:
    header = api.api_client.default_headers
    header["Authorization"] = "Bearer " + sys.argv[1]
    api.api_client.configuration.refresh_api_key_hook = None
    api.api_client.configuration.api_key.clear()
assert api.api_client.configuration.host.startswith("https://10."), api.api_client.configuration.host
try:
    print(*sorted(pod.metadata.name for pod in api.list_namespaced_pod(sys.argv[2]).items))
except kubernetes.client.exceptions.ApiException as error:
    print(error.status)
PY
}

equals "$(list)" 403 "without a role"
kubectl -n work create role reader --verb=list --resource=pods >/dev/null
kubectl -n work create rolebinding reader --role=reader --serviceaccount=work:default >/dev/null
equals "$(list)" "client without" "with the role"
equals "$(list '' default)" 403 "in another namespace"

# signed KEY SECONDS: the pod's own token, signed again so that it expires that far from now.
signed() { TOKEN=$(inside cat $folder/token) python3 - "$@" <<'PY'
import base64, json, os, subprocess, sys, time
encode = lambda data: base64.urlsafe_b64encode(data).rstrip(b"=")
decode = lambda text: base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
header, claims, _ = os.environ["TOKEN"].split(".")
claims = json.loads(decode(claims))
claims["exp"] = int(time.time()) + int(sys.argv[2])
claims["iat"] = claims["nbf"] = claims["exp"] - 3600
message = header.encode() + b"." + encode(json.dumps(claims).encode())
der = subprocess.run(["openssl", "dgst", "-sha256", "-sign", sys.argv[1]], input=message, capture_output=True, check=True).stdout
at, numbers = 2, b""
for _ in "rs":
    size = der[at + 1]
    numbers += der[at + 2:at + 2 + size].lstrip(b"\0").rjust(32, b"\0")
    at += 2 + size
print((message + b"." + encode(numbers)).decode())
PY
}
openssl ecparam -name prime256v1 -genkey -noout -out "$SCRATCH/foreign.key"
equals "$(list "$(signed "$DATA/pki/sa.key" 600)")" "client without" "a token signed again"
equals "$(list "$(signed "$DATA/pki/sa.key" -600)")" 401 "an expired token"
equals "$(list "$(signed "$SCRATCH/foreign.key" 600)")" 401 "a token of a foreign key"
equals "$(list "$(kubectl -n work create token default --audience=vault)")" 401 "a token for somebody else"

# Who has no account gets no pod; who takes the role away gets no answer.
refused=$(kubectl -n work run nobody --image=none --overrides='{"spec":{"serviceAccountName":"nobody"}}' 2>&1) && fail "a pod without its account"
contains "$refused" 'pods "nobody" is forbidden: error looking up service account work/nobody: serviceaccount "nobody" not found' "the refusal"
kubectl -n work delete rolebinding reader >/dev/null
equals "$(list)" 403 "after the role was taken away"

# The token is the pod's: it ends with it.
token=$(inside cat $folder/token)
answer() { curl -s -o /dev/null -w '%{http_code}' --cacert "$DATA/pki/ca.crt" -H "Authorization: Bearer $token" https://127.0.0.1:6443/api/v1/namespaces/work/pods; }
equals "$(answer)" 403 "the pod's token from outside"
kubectl -n work delete pod client --grace-period=1 >/dev/null
equals "$(answer)" 401 "the token of a pod that is gone"
say "result: a pod asks the API server with its own token"
