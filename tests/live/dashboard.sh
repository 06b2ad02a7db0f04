#!/usr/bin/env bash
# Issue 7: what serves the dashboard, without a browser (in Chromium: tests/full/dashboard.sh): the files, their headers, the
# way through `muster dashboard`, and what its token may do.
source "$(dirname "$0")/lib.sh"
up --simulate-gpus 2
direct=https://127.0.0.1:6443/dashboard

# Anybody may have the files: they hold no data.
curl -sk -D "$SCRATCH/head" -o "$SCRATCH/index" "$direct/"
head=$(tr -d '\r' <"$SCRATCH/head")
contains "$head" "HTTP/1.1 200" "the page"
contains "$head" "Content-Security-Policy: default-src 'none'; script-src 'self'" "the page"
contains "$head" "frame-ancestors 'none'" "the page"
contains "$head" "X-Content-Type-Options: nosniff" "the page"
contains "$(cat "$SCRATCH/index")" "<title>muster</title>" "the page (was this built without npm?)"
etag=$(sed -n 's/^ETag: //p' <<<"$head")
equals "$(curl -sk -o /dev/null -w '%{http_code}' -H "If-None-Match: $etag" "$direct/")" 304 "the same page again"
script=$(grep -o 'assets/[^"]*\.js' "$SCRATCH/index" | head -n 1)
plain=$(curl -sk "$direct/$script" | sha256sum)
equals "$(curl -sk --compressed "$direct/$script" | sha256sum)" "$plain" "the script, compressed"
contains "$(curl -sk --compressed -D - -o /dev/null "$direct/$script")" "gzip" "the script's headers"
equals "$(curl -skI -o /dev/null -w '%{http_code}' "$direct/")" 200 "HEAD"
equals "$(curl -sk -o /dev/null -w '%{http_code}' "$direct/nothing")" 404 "no file"

# On loopback, without a certificate of the cluster; with a token that only looks.
start() { # start [FLAG...]: sets url, token, base, pid
  rm -f "$SCRATCH/dashboard.out" # the former one's address
  "$MUSTER" dashboard --no-open "$@" >"$SCRATCH/dashboard.out" 2>&1 &
  pid=$!
  eventually 20 grep -q '#token=' "$SCRATCH/dashboard.out"
  url=$(grep -o 'http://[^ ]*#token=[^ ]*' "$SCRATCH/dashboard.out")
  base=${url%%/dashboard/*} token=${url##*#token=}
}
stop() { kill -INT "$pid" && wait "$pid"; }
code() { curl -s -o /dev/null -w '%{http_code}' "$@"; }
bearer() { code -H "Authorization: Bearer $token" "$@"; }
start
contains "$url" "http://127.0.0.1:8088/dashboard/#token=" "its address"
contains "$(cat "$SCRATCH/dashboard.out")" "kube-system/muster-dashboard until 20" "what it says"
equals "$(code "$base/dashboard/")" 200 "its page"
equals "$(bearer "$base/api/v1/nodes")" 200 "nodes"
contains "$(curl -s -H "Authorization: Bearer $token" "$base/api/v1/nodes")" '"kind":"NodeList"' "nodes"
for path in /api/v1/pods /apis /metrics /apis/kubeflow.org/v1/pytorchjobs /apis/metrics.k8s.io/v1beta1/nodes; do
  equals "$(bearer "$base$path")" 200 "$path"
done
equals "$(bearer "$base/api/v1/secrets")" 403 "secrets"
equals "$(code "$base/api/v1/nodes")" 403 "nodes without a token: it lends nobody its owner's rights"
equals "$(code -H 'Authorization: Bearer wrong' "$base/api/v1/nodes")" 401 "nodes with a wrong token"
equals "$(bearer -X DELETE "$base/api/v1/nodes/x")" 405 "a deletion"
equals "$(bearer -H 'Host: evil.example' "$base/api/v1/nodes")" 403 "under another name"
equals "$(bearer -H 'Origin: https://evil.example' "$base/api/v1/nodes")" 403 "for another page"
may() { kubectl --token "$token" --kubeconfig "$SCRATCH/without" auth can-i "$@" 2>/dev/null || true; }
kubectl config view --raw --minify -o json | jq 'del(.users[].user."client-certificate-data", .users[].user."client-key-data")' >"$SCRATCH/without"
equals "$(may list pods -A) $(may get pods --subresource=log -A) $(may watch nodes)" "yes yes yes" "what it may"
for deed in "create pods" "delete nodes" "get secrets" "create pods --subresource=exec" "impersonate users" "create serviceaccounts --subresource=token" "get nodes --subresource=proxy"; do
  # shellcheck disable=SC2086
  equals "$(may $deed -A)" no "$deed"
done

# The usual port is taken: another one will do, unless it was asked for.
first=$pid
start
[[ $url != *:8088/* ]] || fail "two dashboards at one port"
stop
if "$MUSTER" dashboard --no-open --port 8088 >"$SCRATCH/out" 2>&1; then fail "took a port that is taken"; fi
contains "$(cat "$SCRATCH/out")" "8088" "a port that is taken"
pid=$first
stop || fail "Ctrl-C gives $?"

# With the rights of somebody else.
kubectl create namespace team >/dev/null
kubectl create serviceaccount viewer -n team >/dev/null
kubectl create rolebinding viewer -n team --clusterrole=view --serviceaccount=team:viewer >/dev/null
start --service-account team/viewer --for 10m --port 0
equals "$(bearer "$base/api/v1/namespaces/team/pods") $(bearer "$base/api/v1/nodes")" "200 403" "a team's view"
stop
refused() { # refused TEXT FLAG...
  if "$MUSTER" dashboard --no-open "${@:2}" >"$SCRATCH/out" 2>&1; then fail "dashboard ${*:2} goes on"; fi
  contains "$(cat "$SCRATCH/out")" "$1" "dashboard ${*:2}"
}
refused "from 10m to 168h" --for 1m
refused "expected NAMESPACE/NAME" --service-account viewer
refused "not found" --service-account team/nobody
kubectl --kubeconfig "$SCRATCH/without" config set-credentials nobody --token "$token" >/dev/null
KUBECONFIG=$SCRATCH/without refused "orbidden" --port 0
say "ok"
