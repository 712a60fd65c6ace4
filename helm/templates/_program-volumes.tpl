{{/* The volumes of gateway and worker: their document, the secrets that it names, a home, the shared storage. */}}

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
# Without a limit: if there is no shared storage, it holds the spool or the audit, which check the free space of the node. A pod
# that exceeds a limit would be evicted.
- name: home
  emptyDir: {}
- name: tmp
  emptyDir: {sizeLimit: 256Mi}
{{- end -}}

{{/* Whether a pod gets a token for the Kubernetes API, which only discovery uses. */}}
{{- define "capfleet.usesKubernetes" -}}
{{- if include "capfleet.discovers" . -}}true{{- else -}}false{{- end -}}
{{- end -}}
