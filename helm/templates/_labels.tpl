{{/* Labels of an object: dict "root" $ "component" "gateway", and perhaps "further" labels of the operator. */}}
{{- define "capfleet.labels" -}}
{{- $chart := printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" -}}
{{- $own := dict "helm.sh/chart" $chart "app.kubernetes.io/version" .root.Chart.AppVersion "app.kubernetes.io/managed-by" .root.Release.Service -}}
{{- toYaml (mergeOverwrite $own (include "capfleet.podLabels" . | fromYaml)) -}}
{{- end -}}

{{/* Labels of pods: none that changes with the chart, because each change of a template replaces its pods. */}}
{{- define "capfleet.podLabels" -}}
{{- $own := dict "app.kubernetes.io/part-of" "capfleet" -}}
{{- $selector := include "capfleet.selector" . | fromYaml -}}
{{- toYaml (mergeOverwrite $own .root.Values.commonLabels (default dict .further) $selector) -}}
{{- end -}}

{{/* What finds the pods of a component; never changes, because a Deployment's selector cannot. */}}
{{- define "capfleet.selector" -}}
{{ include "capfleet.releaseSelector" .root }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{/* What finds all pods of this release. */}}
{{- define "capfleet.releaseSelector" -}}
app.kubernetes.io/name: {{ include "capfleet.name" . | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end -}}
