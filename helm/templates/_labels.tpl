{{/* Labels of an object. Takes dict "root" $ "component" "gateway", and optionally "further", labels from the values. */}}
{{- define "capfleet.labels" -}}
{{- $chart := printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" -}}
{{- $own := dict "helm.sh/chart" $chart "app.kubernetes.io/version" .root.Chart.AppVersion "app.kubernetes.io/managed-by" .root.Release.Service -}}
{{- toYaml (mergeOverwrite $own (include "capfleet.podLabels" . | fromYaml)) -}}
{{- end -}}

{{/* Labels of pods, without those that change with the chart's version: every change of a pod template replaces its pods. */}}
{{- define "capfleet.podLabels" -}}
{{- $own := dict "app.kubernetes.io/part-of" "capfleet" -}}
{{- $selector := include "capfleet.selector" . | fromYaml -}}
{{- toYaml (mergeOverwrite $own .root.Values.commonLabels (default dict .further) $selector) -}}
{{- end -}}

{{/* The selector of a component's pods. It must never change, because the selector of a Deployment cannot. */}}
{{- define "capfleet.selector" -}}
{{ include "capfleet.releaseSelector" .root }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{/* The selector of all pods of this release. */}}
{{- define "capfleet.releaseSelector" -}}
app.kubernetes.io/name: {{ include "capfleet.name" . | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end -}}
