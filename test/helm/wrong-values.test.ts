// Values that make no sense are refused before anything is installed, by the name of the key.
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { renderText, WITHOUT_HELM } from '../support/helm/chart.ts'

const IS_REFUSED: Readonly<Record<string, { readonly set: readonly string[]; readonly names: RegExp }>> = {
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
  'an Ingress without a name': { set: ['ingress.enabled=true'], names: /ingress\.host: / },
  'no time to drain': {
    set: ['gateway.terminationGracePeriodSeconds=5'],
    names: /gateway\.preStopSleepSeconds: must be less than gateway\.terminationGracePeriodSeconds/,
  },
  'more gateways at least than at most': {
    set: ['gateway.autoscaling.enabled=true', 'gateway.autoscaling.minReplicas=13'],
    names: /gateway\.autoscaling\.minReplicas: must not be more than gateway\.autoscaling\.maxReplicas/,
  },
  'an autoscaler that goes by nothing': {
    set: ['gateway.autoscaling.enabled=true', 'gateway.autoscaling.targetCPUUtilizationPercentage=0'],
    names: /gateway\.autoscaling: goes by nothing/,
  },
  'a Secret under a name of the chart’s own': {
    set: ['secrets.redis=mine'],
    names: /secrets\.redis: choose another name/,
  },
}

describe('wrong values', { skip: WITHOUT_HELM }, () => {
  for (const [what, { set, names }] of Object.entries(IS_REFUSED)) {
    test(`${what}: refused`, async () => {
      const { status, stderr } = await renderText({ set })
      assert.notEqual(status, 0)
      assert.match(stderr.replaceAll(/\s+/g, ' '), names)
    })
  }
})
