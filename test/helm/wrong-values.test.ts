// Values that make no sense are refused before anything is installed, by the name of the key.
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { renderText, WITHOUT_HELM } from '../support/helm/chart.ts'

interface WrongValues {
  /** As after --set. */
  readonly set?: readonly string[]
  /** As after --set-json. */
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
  'a size that is none': { set: ['storage.size=big'], names: /'\/storage\/size'/ },
  'a pull policy that is none': {
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
    names: /config\.devices: the gateway has no device; name some, or set appliance\.enabled/,
  },
  'gateways without a Redis': {
    set: ['redis.enabled=false'],
    names: /redis\.external\.url: .*share a Redis/,
  },
  'two of them': {
    set: ['redis.external.url=redis://elsewhere:6379'],
    names: /redis\.external\.url: is set while redis\.enabled is true/,
  },
  'appliances of another release without their login': {
    set: ['appliance.enabled=false', 'discovery.enabled=true'],
    names: /fleetLogin\.existingSecret: name a copy/,
  },
  'workers that do not share what they fetch': {
    set: ['config.exports.targets[0].type=s3', 'config.exports.targets[0].name=b'],
    names: /worker\.replicas: .*storage\.enabled/,
  },
  'a route that belongs to no Gateway': { set: ['httpRoute.enabled=true'], names: /httpRoute\.parentRefs: / },
  'a Gateway that would speak plain HTTP to gateways with a certificate': {
    set: [
      'httpRoute.enabled=true',
      'httpRoute.parentRefs[0].name=public',
      'gateway.tls.existingSecret=gateway-tls',
    ],
    names: /httpRoute\.backendTls\.hostname: gateways speak HTTPS/,
  },
  'an Ingress whose callers have one address': {
    set: ['ingress.enabled=true', 'ingress.host=pcap.example'],
    names: /config\.listen\.trustedProxies: .*ingress\.enabled is true.*gateway\.allowUnknownCallers: true/,
  },
  'an Ingress whose list of trusted networks is empty': {
    set: ['ingress.enabled=true', 'ingress.host=pcap.example'],
    json: ['config={"listen":{"trustedProxies":[]}}'],
    names: /config\.listen\.trustedProxies: /,
  },
  'a route whose callers have one address': {
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
  'an Ingress without a name': { set: ['ingress.enabled=true'], names: /ingress\.host: / },
  'no time to drain': {
    set: ['gateway.terminationGracePeriodSeconds=30'],
    names: /gateway\.terminationGracePeriodSeconds: must be more than gateway\.preStopSleepSeconds/,
  },
  'more gateways at least than at most': {
    set: ['gateway.autoscaling.enabled=true', 'gateway.autoscaling.minReplicas=13'],
    names: /gateway\.autoscaling\.minReplicas: must not be more than gateway\.autoscaling\.maxReplicas/,
  },
  'an autoscaler that goes by nothing': {
    set: ['gateway.autoscaling.enabled=true', 'gateway.autoscaling.targetCPUUtilizationPercentage=0'],
    names: /gateway\.autoscaling: goes by nothing/,
  },
  'an autoscaler that goes by a share of nothing': {
    set: ['gateway.autoscaling.enabled=true', 'gateway.resources.requests=null'],
    names: /gateway\.resources\.requests\.cpu: /,
  },
  'a budget that lets no gateway go': {
    set: ['gateway.podDisruptionBudget.maxUnavailable=0'],
    names: /gateway\.podDisruptionBudget: lets no gateway go/,
  },
  'a budget that keeps all gateways': {
    set: ['gateway.podDisruptionBudget.minAvailable=3'],
    names: /gateway\.podDisruptionBudget: lets no gateway go/,
  },
  'a budget that is none': {
    set: ['gateway.podDisruptionBudget.maxUnavailable=most'],
    names: /'\/gateway\/podDisruptionBudget\/maxUnavailable'/,
  },
  'an empty list of networks, which would be all of them': {
    json: ['networkPolicy.deviceCidrs=[]'],
    names: /'\/networkPolicy\/deviceCidrs': minItems/,
  },
  'a network that is none': {
    set: ['networkPolicy.serviceCidrs={999.1.1.1/99}'],
    names: /'\/networkPolicy\/serviceCidrs\/0'/,
  },
  'a section without what is in it': { json: ['config=null'], names: /missing property 'config'/ },
  'a section of the document that is none': {
    set: ['config.listen=8080'],
    names: /'\/config\/listen': got number, want object/,
  },
  'a device without an address': {
    set: ['config.devices[0].name=lon1'],
    names: /'\/config\/devices\/0': missing property 'url'/,
  },
  'another home than the one that is mounted': { set: ['config.home=/data'], names: /config\.home: / },
  'a password that everybody could read': {
    set: ['redis.enabled=false', 'redis.external.url=redis://:hunter2@elsewhere'],
    names: /'\/redis\/external\/url'/,
  },
  'Sentinels beside the Redis of the release': {
    set: ['redis.external.sentinel.addresses[0].host=elsewhere'],
    names: /redis\.external\.sentinel\.addresses: is set while redis\.enabled is true/,
  },
  'Redis by URL and by Sentinels': {
    set: [
      'redis.enabled=false',
      'redis.external.url=redis://elsewhere',
      'redis.external.sentinel.addresses[0].host=elsewhere',
    ],
    names: /redis\.external\.url: leave it out/,
  },
  'an authority for what is not encrypted': {
    set: [
      'redis.enabled=false',
      'redis.external.url=redis://elsewhere',
      'redis.external.tls.existingSecret=redis-tls',
    ],
    names: /redis\.external\.url: must begin with rediss:/,
  },
  'a certificate for Redis that nobody has': {
    set: [
      'redis.enabled=false',
      'redis.external.url=rediss://elsewhere',
      'redis.external.tls.clientCertificate=true',
    ],
    names: /redis\.external\.tls\.existingSecret: /,
  },
  'appliances of another release beside its own': {
    set: ['discovery.service=other-appliance'],
    names: /discovery\.namespace, service and tls are of another release/,
  },
  'users of the appliances without the one that the gateway is': {
    set: ['appliance.auth.existingSecret=device-users'],
    names: /fleetLogin\.existingSecret: appliance\.auth\.existingSecret has the users/,
  },
  'an appliance that has no time for its downloads': {
    set: ['appliance.terminationGracePeriodSeconds=30'],
    names: /'\/appliance\/terminationGracePeriodSeconds'/,
  },
  'a label by which objects are found': {
    set: ['commonLabels.app\\.kubernetes\\.io/name=x'],
    names: /commonLabels: app\.kubernetes\.io\/name is the chart's own/,
  },
  'a name that Kubernetes does not take': {
    set: ['fullnameOverride=Foo_Bar'],
    names: /'\/fullnameOverride'/,
  },
  'an address for a host name': { set: ['ingress.host=https://pcap.example'], names: /'\/ingress\/host'/ },
  'a user that would be an option': { set: ['auth.firstUser=-x'], names: /'\/auth\/firstUser'/ },
  'a Secret under a name of the chart’s own': {
    set: ['secrets.redis=mine'],
    names: /secrets\.redis: choose another name/,
  },
}

describe('wrong values', { skip: WITHOUT_HELM }, () => {
  for (const [what, { names, ...values }] of Object.entries(IS_REFUSED)) {
    test(`${what}: refused`, async () => {
      const { status, stderr } = await renderText(values)
      assert.notEqual(status, 0)
      assert.match(stderr.replaceAll(/\s+/g, ' '), names)
    })
  }
})
