/** What a cluster has before the chart is installed: namespaces, volumes, and the kinds of operators. */

interface Levels {
  readonly restricted: readonly string[]
  readonly privileged: readonly string[]
}

/** Namespaces with two levels of Pod Security, which refuse pods and warn about objects that would create them. */
export function namespaces({ restricted, privileged }: Levels): readonly object[] {
  const make = (level: string) => (name: string) => ({
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: {
      name,
      labels: { 'pod-security.kubernetes.io/enforce': level, 'pod-security.kubernetes.io/warn': level },
    },
  })
  return [...restricted.map(make('restricted')), ...privileged.map(make('privileged'))]
}

/** This many volumes without a class, and of the class "nfs": the first claim binds them. */
export function volumes(count: number): readonly object[] {
  return ['', 'nfs'].flatMap((storageClassName) =>
    Array.from({ length: count }, (_, index) => ({
      apiVersion: 'v1',
      kind: 'PersistentVolume',
      metadata: { name: `volume${storageClassName}-${index}` },
      spec: {
        capacity: { storage: '1Ti' },
        accessModes: ['ReadWriteOnce', 'ReadWriteMany'],
        persistentVolumeReclaimPolicy: 'Retain',
        storageClassName,
        hostPath: { path: `/volumes/${index}` },
      },
    })),
  )
}

const KINDS = [
  { group: 'gateway.networking.k8s.io', version: 'v1', kind: 'HTTPRoute', plural: 'httproutes' },
  {
    group: 'gateway.networking.k8s.io',
    version: 'v1',
    kind: 'BackendTLSPolicy',
    plural: 'backendtlspolicies',
  },
  { group: 'monitoring.coreos.com', version: 'v1', kind: 'ServiceMonitor', plural: 'servicemonitors' },
  { group: 'monitoring.coreos.com', version: 'v1', kind: 'PrometheusRule', plural: 'prometheusrules' },
]

/** The kinds that operators define, with any fields. */
export function crdsOfOperators(): readonly object[] {
  return KINDS.map(({ group, version, kind, plural }) => {
    const schema = {
      openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
    }
    const approved = { 'api-approved.kubernetes.io': 'unapproved, for tests' }
    return {
      apiVersion: 'apiextensions.k8s.io/v1',
      kind: 'CustomResourceDefinition',
      metadata: { name: `${plural}.${group}`, annotations: approved },
      spec: {
        group,
        scope: 'Namespaced',
        names: { kind, plural, singular: kind.toLowerCase() },
        versions: [{ name: version, served: true, storage: true, schema }],
      },
    }
  })
}
