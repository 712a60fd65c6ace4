{{/* What pods have in common. All but the recorder's meet the Pod Security level "restricted". */}}

{{- define "capfleet.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
fsGroupChangePolicy: OnRootMismatch
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{- define "capfleet.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{/* In a pod that has also the recorder, each container says itself who it is. */}}
{{- define "capfleet.applianceSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
{{ include "capfleet.containerSecurity" . }}
{{- end -}}

{{/* dict "root" $ "image" .Values.gateway.image */}}
{{- define "capfleet.image" -}}
{{- $name := .image.repository -}}
{{- with .root.Values.imageRegistry -}}{{- $name = printf "%s/%s" . $name -}}{{- end -}}
{{- if .image.digest -}}
{{- printf "%s@%s" $name .image.digest -}}
{{- else -}}
{{- printf "%s:%s" $name (default .root.Chart.AppVersion .image.tag) -}}
{{- end -}}
{{- end -}}

{{/* Where pods may and shall run: the values of a component. */}}
{{- define "capfleet.placement" -}}
{{- with .nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- end -}}

{{/* Spread over machines and zones: dict "root" $ "component" "gateway" "spread" list. */}}
{{- define "capfleet.spread" -}}
{{- if .spread }}
topologySpreadConstraints:
  {{- range .spread }}
  - topologyKey: {{ .topologyKey }}
    maxSkew: {{ default 1 .maxSkew }}
    whenUnsatisfiable: {{ default "ScheduleAnyway" .whenUnsatisfiable }}
    # Pods of the version before, which are draining, do not count.
    matchLabelKeys: [pod-template-hash]
    labelSelector:
      matchLabels: {{- include "capfleet.selector" $ | nindent 8 }}
  {{- end }}
{{- end }}
{{- end -}}

{{/*
A probe of a program's path: dict "listen" (of its document) "path" "/livez". Where clients need a certificate, the
kubelet has none: it can only try to connect.
*/}}
{{- define "capfleet.probe" -}}
{{- if dig "tls" "clientCa" "" .listen -}}
tcpSocket:
  port: http
{{- else -}}
httpGet:
  path: {{ .path }}
  port: http
  {{- if .listen.tls }}
  scheme: HTTPS
  {{- end }}
{{- end }}
{{- end -}}

{{/*
An init container that makes a users file of one user: dict "root" $ "image" IMAGE "user" NAME "role" ROLE "salt" BOOL. Its
password is in the volume "login", the file goes into the volume "users". With a salt, from there too, the files of all pods are
equal, as gateways need them: sessions and tickets hang on the password's hash.
*/}}
{{- define "capfleet.makeUsers" -}}
name: make-users
image: {{ include "capfleet.image" . }}
imagePullPolicy: {{ .image.pullPolicy }}
# The password goes from file to file: it is in no command line and no environment.
command:
  - sh
  - -c
  - exec capfleet user add "$@" --file /etc/capfleet/users/users.yaml < /etc/capfleet/secrets/login/password
  - sh
  - {{ .user | quote }}
  - --role={{ .role }}
  {{- if .salt }}
  - --salt-file=/etc/capfleet/secrets/login/salt
  {{- end }}
securityContext: {{- include "capfleet.applianceSecurity" . | nindent 2 }}
resources: {{- toYaml .root.Values.initResources | nindent 2 }}
volumeMounts:
  - name: users
    mountPath: /etc/capfleet/users
  - name: login
    mountPath: /etc/capfleet/secrets/login
    readOnly: true
{{- end -}}
