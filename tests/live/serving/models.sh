# Models for the serving tests, trained here with scikit-learn. Source it after lib.sh.
PYTHON=/usr/bin/python3 # Debian's, which has Debian's scikit-learn
"$PYTHON" -c 'import sklearn, joblib' 2>/dev/null || skip "no python3-sklearn (tools/install-packages example)"

# iris_model DIRECTORY: one that tells irises apart.
iris_model() {
  mkdir -p "$1"
  "$PYTHON" - "$1/model.joblib" <<'PY'
import sys
import joblib
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
rows, kinds = load_iris(return_X_y=True)
joblib.dump(LogisticRegression(max_iter=1000).fit(rows, kinds), sys.argv[1])
PY
}
# constant_model DIRECTORY NUMBER: one that always says this number, so that an answer tells who gave it.
constant_model() {
  mkdir -p "$1"
  "$PYTHON" - "$1/model.joblib" "$2" <<'PY'
import sys
import joblib
from sklearn.dummy import DummyClassifier
number = int(sys.argv[2])
joblib.dump(DummyClassifier(strategy="constant", constant=number).fit([[0.0]], [number]), sys.argv[1])
PY
}
cluster_ip() { jsonpath "service/$1" .spec.clusterIP; }
isvc_ready() { kubectl wait --for=condition=Ready "isvc/$1" --timeout=180s; }
# ask SERVICE PATH [BODY]: through the Service of this name.
ask() { curl -sS --max-time 90 "http://$(cluster_ip "$1")$2" ${3:+-d "$3"}; }
