{{- define "database.selectorLabels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "database.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{ include "database.selectorLabels" . }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- /* The given password, else the one that is in the cluster, else a new one: in base64. */}}
{{- define "database.password" -}}
{{- $present := lookup "v1" "Secret" .Release.Namespace .Release.Name }}
{{- if .Values.password }}
{{- .Values.password | b64enc }}
{{- else if $present }}
{{- index $present.data "password" }}
{{- else }}
{{- randAlphaNum 24 | b64enc }}
{{- end }}
{{- end }}
