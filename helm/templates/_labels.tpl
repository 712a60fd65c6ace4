{{/* Labels of an object: dict "root" $ "component" "gateway". */}}
{{- define "capfleet.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
{{ include "capfleet.podLabels" . }}
{{- end -}}

{{/* Labels of pods: none that changes with the chart, because each change of a template replaces its pods. */}}
{{- define "capfleet.podLabels" -}}
{{ include "capfleet.selector" . }}
app.kubernetes.io/part-of: capfleet
{{- with .root.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* What finds the pods of a component; never changes, because a Deployment's selector cannot. */}}
{{- define "capfleet.selector" -}}
{{ include "capfleet.releaseSelector" .root }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{/* What finds all pods of this release. */}}
{{- define "capfleet.releaseSelector" -}}
app.kubernetes.io/name: {{ include "capfleet.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}
