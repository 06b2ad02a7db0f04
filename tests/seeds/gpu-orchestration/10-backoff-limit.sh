#!/usr/bin/env bash
# backoffLimit: 3: four attempts in all, then the job has failed and says why.
source "$(dirname "$0")/../lib.sh"
up_machine
# One pod for each attempt, as the article describes it; their waits between attempts are upstream's 10, 20, 40 s.
sed 's/backoffLimit: 3/backoffLimit: 1/; s/OnFailure/Never/' "$EXAMPLE" | kubectl apply -f -
condition() { jsonpath job/train-with-retries ".status.conditions[?(@.type==\"Failed\")].$1"; }
failed() { [ "$(condition status)" = True ]; }
eventually 40 failed
equals "$(condition reason)" BackoffLimitExceeded
equals "$(kubectl get pods -l job-name=train-with-retries -o name | wc -l)" 2 "attempts of backoffLimit 1"
equals "$(jsonpath job/train-with-retries .status.failed)" 2 "status.failed"
# The article's own: not failed before the fourth attempt.
kubectl delete job train-with-retries --wait >/dev/null
kubectl apply -f "$EXAMPLE"
attempts() { kubectl get pods -l job-name=train-with-retries -o 'jsonpath={.items[0].status.containerStatuses[0].restartCount}'; }
tried_again() { [ "$(attempts)" -ge 1 ]; }
eventually 30 tried_again
equals "$(condition status)" "" "failed after the second attempt"
