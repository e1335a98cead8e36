{{- define "tidegate.name" -}}
{{- .Values.nameOverride | default .Chart.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{/* Short enough for the longest suffix, `-dashboard`, within 63 characters. */}}
{{- define "tidegate.fullname" -}}
{{- $name := include "tidegate.name" . -}}
{{- $full := .Values.fullnameOverride | default (ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name)) -}}
{{- $full | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{- define "tidegate.selector" -}}
app.kubernetes.io/name: {{ include "tidegate.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "tidegate.labels" -}}
{{ include "tidegate.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- with .Values.labels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* Metadata of an object: (list $ SUFFIX LABELS ANNOTATIONS NAMESPACE), of which the last three may be
missing. */}}
{{- define "tidegate.metadata" -}}
{{- $root := index . 0 -}}
{{- $labels := dict -}}
{{- $annotations := dict -}}
{{- $namespace := "" -}}
{{- if gt (len .) 2 }}{{ $labels = index . 2 | default dict }}{{ end -}}
{{- if gt (len .) 3 }}{{ $annotations = index . 3 | default dict }}{{ end -}}
{{- if gt (len .) 4 }}{{ $namespace = index . 4 }}{{ end -}}
name: {{ include "tidegate.fullname" $root }}{{ index . 1 }}
namespace: {{ $namespace | default $root.Release.Namespace }}
labels:
  {{- include "tidegate.labels" $root | nindent 2 }}
  {{- with $labels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with merge (deepCopy $annotations) (deepCopy $root.Values.annotations) }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "tidegate.serviceAccount" -}}
{{- .Values.serviceAccount.name | default (ternary (include "tidegate.fullname" .) "default" .Values.serviceAccount.create) -}}
{{- end -}}

{{- define "tidegate.image" -}}
{{- $image := .Values.image -}}
{{- if $image.digest -}}
{{ $image.repository }}@{{ $image.digest }}
{{- else -}}
{{ $image.repository }}:{{ $image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{/* The listeners that are on, with the one for administrators, as YAML. */}}
{{- define "tidegate.listeners" -}}
{{- $on := dict "admin" (mergeOverwrite (dict "hostPort" 0) (deepCopy .Values.admin)) -}}
{{- range $name, $listener := .Values.listeners -}}
{{- if $listener.enabled }}{{ $_ := set $on $name $listener }}{{ end -}}
{{- end -}}
{{- toYaml $on -}}
{{- end -}}

{{/* The section `listen` of the configuration. */}}
{{- define "tidegate.listen" -}}
{{- $listen := dict -}}
{{- range $name, $listener := include "tidegate.listeners" . | fromYaml -}}
{{- $fields := mergeOverwrite (deepCopy $listener.settings) (dict "address" (printf ":%d" (int $listener.port))) -}}
{{- if $listener.tls.secret -}}
{{- $files := printf "/etc/tidegate/tls/%s" $name -}}
{{- $tls := dict "cert" (printf "%s/tls.crt" $files) "key" (printf "%s/tls.key" $files) -}}
{{- if $listener.tls.clientCa }}{{ $_ := set $tls "client_ca" (printf "%s/ca.crt" $files) }}{{ end -}}
{{- $_ := set $fields "tls" $tls -}}
{{- end -}}
{{- if $listener.token.secret -}}
{{- $_ := set $fields "token_file" (printf "/etc/tidegate/tokens/%s/token" $name) -}}
{{- end -}}
{{- $_ := set $listen $name $fields -}}
{{- end -}}
{{- toYaml $listen -}}
{{- end -}}

{{/* The whole configuration. */}}
{{- define "tidegate.config" -}}
{{- $config := deepCopy .Values.config -}}
{{- $_ := set $config "listen" (include "tidegate.listen" . | fromYaml) -}}
{{- $store := $config.store | default dict -}}
{{- if kindIs "string" $store }}{{ $store = dict "url" $store }}{{ end -}}
{{- $tls := dict -}}
{{- if .Values.redis.tls.caSecret }}{{ $_ := set $tls "ca" "/etc/tidegate/redis-ca/ca.crt" }}{{ end -}}
{{- if .Values.redis.tls.certSecret -}}
{{- $_ := set $tls "cert" "/etc/tidegate/redis-cert/tls.crt" -}}
{{- $_ := set $tls "key" "/etc/tidegate/redis-cert/tls.key" -}}
{{- end -}}
{{- if $tls }}{{ $store = mergeOverwrite (deepCopy $store) (dict "redis" (dict "tls" $tls)) }}{{ end -}}
{{- if .Values.keySecret.secret }}{{ $store = mergeOverwrite (deepCopy $store) (dict "key_secret_file" "/etc/tidegate/key-secret/key-secret") }}{{ end -}}
{{- if $store }}{{ $_ := set $config "store" $store }}{{ end -}}
{{- toYaml $config -}}
{{- end -}}

{{/* Settings that Tidegate reads only at start. A change of their hash replaces the pods. */}}
{{- define "tidegate.restart" -}}
{{- $config := include "tidegate.config" . | fromYaml -}}
{{- $kept := pick $config "listen" "alerts" "traces" "logs" "statsd" -}}
{{- with omit ($config.store | default dict) "on_failure" "local_share" "key_secret" }}{{ $_ := set $kept "store" . }}{{ end -}}
{{- $_ := set $kept "routes" (hasKey $config "routes") -}}
{{- toYaml (dict "config" $kept "redis" .Values.redis) -}}
{{- end -}}

{{/* `alone` if buckets are in memory, as far as the values show, so that each instance counts separately. */}}
{{- define "tidegate.alone" -}}
{{- $url := "memory" -}}
{{- with .Values.config.store -}}
{{- if kindIs "string" . }}{{ $url = . }}{{ else }}{{ $url = .url | default "memory" }}{{ end -}}
{{- end -}}
{{- if and (eq (toString $url) "memory") (not .Values.redis.url) (not .Values.redis.existingSecret.name) (not .Values.existingConfigMap.name) -}}
{{- range .Values.env }}{{ if eq .name "TIDEGATE_STORE_URL" }}{{ $url = "set" }}{{ end }}{{ end -}}
{{- if eq (toString $url) "memory" }}alone{{ end -}}
{{- end -}}
{{- end -}}

{{/* Contradictions that a schema cannot express. */}}
{{- define "tidegate.check" -}}
{{- $ports := dict -}}
{{- range $name, $listener := include "tidegate.listeners" . | fromYaml -}}
{{- $port := toString (int $listener.port) -}}
{{- if hasKey $ports $port }}{{ fail (printf "the listeners %s and %s have the same port %s" (get $ports $port) $name $port) }}{{ end -}}
{{- $_ := set $ports $port $name -}}
{{- if and $.Values.existingConfigMap.name (or $listener.tls.secret $listener.token.secret $listener.settings) -}}
{{- fail (printf "existingConfigMap: write tls, token and settings of the listener %s into your configuration, and mount the files with extraVolumes" $name) -}}
{{- end -}}
{{- if and $listener.tls.clientCa (not $listener.tls.secret) }}{{ fail (printf "listeners.%s.tls.clientCa needs tls.secret, with ca.crt" $name) }}{{ end -}}
{{- end -}}
{{- if eq (len $ports) 1 }}{{ fail "enable one of the listeners http, grpc, gateway and resp" }}{{ end -}}
{{- if hasKey .Values.config "listen" }}{{ fail "config.listen: set `listeners` and `admin` instead, from which the chart writes it" }}{{ end -}}
{{- if and .Values.listeners.gateway.enabled (not .Values.existingConfigMap.name) (not .Values.config.routes) }}{{ fail "listeners.gateway needs config.routes" }}{{ end -}}
{{- if and .Values.config.routes (not .Values.listeners.gateway.enabled) (not .Values.existingConfigMap.name) }}{{ fail "config.routes needs listeners.gateway.enabled" }}{{ end -}}
{{- if and .Values.redis.existingSecret.name (or .Values.redis.url .Values.redis.password) }}{{ fail "redis: set existingSecret, or url and password, but not both" }}{{ end -}}
{{- if and .Values.existingConfigMap.name (or .Values.redis.tls.caSecret .Values.redis.tls.certSecret .Values.keySecret.secret) }}{{ fail "existingConfigMap: write store.redis.tls and key_secret_file into your configuration" }}{{ end -}}
{{- if and .Values.autoscaling.enabled (ne .Values.kind "Deployment") }}{{ fail "autoscaling needs kind: Deployment" }}{{ end -}}
{{- if and .Values.autoscaling.enabled (gt (int .Values.autoscaling.minReplicas) (int .Values.autoscaling.maxReplicas)) }}{{ fail "autoscaling.minReplicas is above maxReplicas" }}{{ end -}}
{{- if and .Values.autoscaling.enabled (not .Values.autoscaling.metrics) (not .Values.autoscaling.targetCPUUtilizationPercentage) }}{{ fail "autoscaling needs targetCPUUtilizationPercentage or metrics" }}{{ end -}}
{{- end -}}
