{{/* What gateway and worker mount: their document, the secrets that it names, a home, the shared storage. */}}

{{/* Secrets below /etc/capfleet/secrets: name -> Secret. */}}
{{- define "capfleet.programSecrets" -}}
{{- include "capfleet.redisSecrets" . }}
{{- if include "capfleet.discovers" . }}
fleet: {{ include "capfleet.fleetLoginSecret" . }}
{{- with .Values.discovery.caSecret }}
appliance-ca: {{ . }}
{{- end }}
{{- end }}
{{- with .Values.secrets }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "capfleet.programMounts" -}}
- name: config
  mountPath: /etc/capfleet/gateway.yaml
  subPath: gateway.yaml
  readOnly: true
{{- range $name, $_ := include "capfleet.programSecrets" . | fromYaml }}
- name: secret-{{ $name }}
  mountPath: /etc/capfleet/secrets/{{ $name }}
  readOnly: true
{{- end }}
{{- if .Values.storage.enabled }}
- name: storage
  mountPath: /srv/capfleet
{{- end }}
- name: home
  mountPath: /var/lib/capfleet
- name: tmp
  mountPath: /tmp
{{- end -}}

{{- define "capfleet.programVolumes" -}}
- name: config
  configMap:
    name: {{ include "capfleet.fullname" . }}-gateway
{{- range $name, $secret := include "capfleet.programSecrets" . | fromYaml }}
- name: secret-{{ $name }}
  secret:
    secretName: {{ $secret | quote }}
    defaultMode: 0440
{{- end }}
{{- if .Values.storage.enabled }}
- name: storage
  persistentVolumeClaim:
    claimName: {{ include "capfleet.storageClaim" . | quote }}
{{- end }}
# Without a limit: where nothing is shared it holds the spool or the audit, which see the room of the node, and a pod that is
# larger than its limit is evicted.
- name: home
  emptyDir: {}
- name: tmp
  emptyDir: {sizeLimit: 256Mi}
{{- end -}}

{{/* Whether a pod has a token of the Kubernetes API, which only the discovery uses. */}}
{{- define "capfleet.usesKubernetes" -}}
{{- if include "capfleet.discovers" . -}}true{{- else -}}false{{- end -}}
{{- end -}}
