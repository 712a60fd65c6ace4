// Invalid values are rejected before anything is installed. The message names the key.
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { renderText, WITHOUT_HELM } from '../support/helm/chart.ts'

interface WrongValues {
  /** Arguments of --set. */
  readonly set?: readonly string[]
  /** Arguments of --set-json. */
  readonly json?: readonly string[]
  readonly names: RegExp
}

const IS_REFUSED: Readonly<Record<string, WrongValues>> = {
  'a key that is misspelt': { set: ['gatewy.replicas=2'], names: /'gatewy' not allowed/ },
  'a key that is misspelt deep down': {
    set: ['gateway.image.tagg=1'],
    names: /'\/gateway\/image'.*'tagg' not allowed/,
  },
  'a text for a number': { set: ['gateway.replicas=many'], names: /'\/gateway\/replicas': got string/ },
  'an invalid size': { set: ['storage.size=big'], names: /'\/storage\/size'/ },
  'an unknown pull policy': {
    set: ['gateway.image.pullPolicy=Sometimes'],
    names: /'\/gateway\/image\/pullPolicy'/,
  },
  'a capability that the recorder has no use for': {
    set: ['appliance.recorder.extraCapabilities={SYS_ADMIN}'],
    names: /'\/appliance\/recorder\/extraCapabilities\/0'/,
  },
  'another server than Redis': {
    set: ['redis.enabled=false', 'redis.external.url=memcached://x'],
    names: /'\/redis\/external\/url'/,
  },
  'neither gateways nor appliances': {
    set: ['gateway.enabled=false', 'appliance.enabled=false'],
    names: /gateway\.enabled and appliance\.enabled are both false/,
  },
  'a gateway without a device': {
    set: ['appliance.enabled=false'],
    names: /config\.devices: the gateway has no devices; add some, or set appliance\.enabled/,
  },
  'gateways without a Redis': {
    set: ['redis.enabled=false'],
    names: /redis\.external\.url: .*need a shared Redis/,
  },
  'a second Redis beside that of the release': {
    set: ['redis.external.url=redis://elsewhere:6379'],
    names: /redis\.external\.url: has no effect while redis\.enabled is true/,
  },
  'appliances of another release without their login': {
    set: ['appliance.enabled=false', 'discovery.enabled=true'],
    names: /fleetLogin\.existingSecret: is required; name a copy/,
  },
  'several workers without shared storage': {
    set: ['config.exports.targets[0].type=s3', 'config.exports.targets[0].name=b'],
    names: /worker\.replicas: .*storage\.enabled/,
  },
  'a route without a Gateway': { set: ['httpRoute.enabled=true'], names: /httpRoute\.parentRefs: / },
  'a Gateway that would speak plain HTTP to gateways with a certificate': {
    set: [
      'httpRoute.enabled=true',
      'httpRoute.parentRefs[0].name=public',
      'gateway.tls.existingSecret=gateway-tls',
    ],
    names: /httpRoute\.backendTls\.hostname: is required because gateways speak HTTPS/,
  },
  'an Ingress whose callers all have the address of the proxy': {
    set: ['ingress.enabled=true', 'ingress.host=pcap.example'],
    names: /config\.listen\.trustedProxies: .*ingress\.enabled is true.*gateway\.allowUnknownCallers: true/,
  },
  'an Ingress whose list of trusted networks is empty': {
    set: ['ingress.enabled=true', 'ingress.host=pcap.example'],
    json: ['config={"listen":{"trustedProxies":[]}}'],
    names: /config\.listen\.trustedProxies: /,
  },
  'a route whose callers all have the address of the proxy': {
    set: ['httpRoute.enabled=true', 'httpRoute.parentRefs[0].name=public'],
    names: /config\.listen\.trustedProxies: .*httpRoute\.enabled is true/,
  },
  'a Prometheus without a login': {
    set: ['monitoring.serviceMonitor.enabled=true', 'config.auth.anonymousMetrics=false'],
    names: /monitoring\.serviceMonitor\.endpoint: .*gateways.*config\.auth\.anonymousMetrics: true/,
  },
  'a Prometheus without a login at appliances': {
    set: ['monitoring.serviceMonitor.enabled=true', 'config.auth.anonymousMetrics=true'],
    names:
      /monitoring\.serviceMonitor\.endpoint: .*appliances.*appliance\.config\.auth\.anonymousMetrics: true/,
  },
  'an Ingress without a host name': { set: ['ingress.enabled=true'], names: /ingress\.host: / },
  'no time to drain': {
    set: ['gateway.terminationGracePeriodSeconds=30'],
    names:
      /gateway\.terminationGracePeriodSeconds: must exceed gateway\.preStopSleepSeconds by more than 20 s/,
  },
  'a minimum of gateways above the maximum': {
    set: ['gateway.autoscaling.enabled=true', 'gateway.autoscaling.minReplicas=13'],
    names: /gateway\.autoscaling\.minReplicas: must not be more than gateway\.autoscaling\.maxReplicas/,
  },
  'an autoscaler without a target': {
    set: ['gateway.autoscaling.enabled=true', 'gateway.autoscaling.targetCPUUtilizationPercentage=0'],
    names: /gateway\.autoscaling: has no target/,
  },
  'an autoscaler that scales by a percentage of an unset CPU request': {
    set: ['gateway.autoscaling.enabled=true', 'gateway.resources.requests=null'],
    names: /gateway\.resources\.requests\.cpu: /,
  },
  'a disruption budget that allows no eviction': {
    set: ['gateway.podDisruptionBudget.maxUnavailable=0'],
    names: /gateway\.podDisruptionBudget: never allows an eviction/,
  },
  'a disruption budget that keeps all gateways': {
    set: ['gateway.podDisruptionBudget.minAvailable=3'],
    names: /gateway\.podDisruptionBudget: never allows an eviction/,
  },
  'an invalid disruption budget': {
    set: ['gateway.podDisruptionBudget.maxUnavailable=most'],
    names: /'\/gateway\/podDisruptionBudget\/maxUnavailable'/,
  },
  'an empty list of networks, which would allow all networks': {
    json: ['networkPolicy.deviceCidrs=[]'],
    names: /'\/networkPolicy\/deviceCidrs': minItems/,
  },
  'an invalid network': {
    set: ['networkPolicy.serviceCidrs={999.1.1.1/99}'],
    names: /'\/networkPolicy\/serviceCidrs\/0'/,
  },
  'a section that is null': { json: ['config=null'], names: /missing property 'config'/ },
  'a number for a section of the document': {
    set: ['config.listen=8080'],
    names: /'\/config\/listen': got number, want object/,
  },
  'a device without an address': {
    set: ['config.devices[0].name=lon1'],
    names: /'\/config\/devices\/0': missing property 'url'/,
  },
  'a home that is not mounted': { set: ['config.home=/data'], names: /config\.home: / },
  'a password in the URL of Redis': {
    set: ['redis.enabled=false', 'redis.external.url=redis://:hunter2@elsewhere'],
    names: /'\/redis\/external\/url'/,
  },
  'Sentinels beside the Redis of the release': {
    set: ['redis.external.sentinel.addresses[0].host=elsewhere'],
    names: /redis\.external\.sentinel\.addresses: has no effect while redis\.enabled is true/,
  },
  'Redis by URL and by Sentinels': {
    set: [
      'redis.enabled=false',
      'redis.external.url=redis://elsewhere',
      'redis.external.sentinel.addresses[0].host=elsewhere',
    ],
    names: /redis\.external\.url: must not be set together with redis\.external\.sentinel\.addresses/,
  },
  'a CA certificate for a Redis without TLS': {
    set: [
      'redis.enabled=false',
      'redis.external.url=redis://elsewhere',
      'redis.external.tls.existingSecret=redis-tls',
    ],
    names: /redis\.external\.url: must begin with rediss:/,
  },
  'a client certificate for Redis without its Secret': {
    set: [
      'redis.enabled=false',
      'redis.external.url=rediss://elsewhere',
      'redis.external.tls.clientCertificate=true',
    ],
    names: /redis\.external\.tls\.existingSecret: /,
  },
  'appliances of another release beside its own': {
    set: ['discovery.service=other-appliance'],
    names: /discovery\.namespace, service, tls: describe appliances of another release/,
  },
  'users of the appliances without the login of the gateway': {
    set: ['appliance.auth.existingSecret=device-users'],
    names: /fleetLogin\.existingSecret: is required with appliance\.auth\.existingSecret/,
  },
  'an appliance without time for its downloads to end': {
    set: ['appliance.terminationGracePeriodSeconds=30'],
    names: /'\/appliance\/terminationGracePeriodSeconds'/,
  },
  'a label that the chart selects objects by': {
    set: ['commonLabels.app\\.kubernetes\\.io/name=x'],
    names: /commonLabels: must not set app\.kubernetes\.io\/name, by which the chart selects/,
  },
  'a name that Kubernetes rejects': {
    set: ['fullnameOverride=Foo_Bar'],
    names: /'\/fullnameOverride'/,
  },
  'a URL for a host name': { set: ['ingress.host=https://pcap.example'], names: /'\/ingress\/host'/ },
  'a user name that would be taken for an option': {
    set: ['auth.firstUser=-x'],
    names: /'\/auth\/firstUser'/,
  },
  'a Secret under a name that the chart uses': {
    set: ['secrets.redis=mine'],
    names: /secrets\.redis: the chart uses this name/,
  },
}

describe('wrong values', { skip: WITHOUT_HELM }, () => {
  for (const [what, { names, ...values }] of Object.entries(IS_REFUSED)) {
    test(`${what} is rejected`, async () => {
      const { status, stderr } = await renderText(values)
      assert.notEqual(status, 0)
      assert.match(stderr.replaceAll(/\s+/g, ' '), names)
    })
  }
})
