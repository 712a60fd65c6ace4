// The chart passes Helm's lint, its unit tests and the schemas of Kubernetes; a chart with a planted mistake does not.
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { parse } from 'yaml'
import { CHART, CI_VALUES, plantInChart, WITHOUT_HELM } from '../support/helm/chart.ts'
import { conform, kubernetesVersions, lint, unitTest } from '../support/helm/chart-checks.ts'
import { REPOSITORY_ROOT } from '../support/repository-files.ts'

test('the chart is of the version that it installs', async () => {
  const { version } = JSON.parse(await readFile(join(REPOSITORY_ROOT, 'package.json'), 'utf8'))
  const chart = parse(await readFile(join(CHART, 'Chart.yaml'), 'utf8'))
  assert.deepEqual([chart.version, chart.appVersion], [version, version])
})

const IS_LONG = process.env.CAPFLEET_LONG === '1'

describe('the chart', { skip: WITHOUT_HELM }, () => {
  for (const [name, path] of Object.entries(CI_VALUES)) {
    test(`passes helm lint --strict with the values ${name}`, async () => {
      assert.equal(await lint(CHART, path), '')
    })
  }

  test('does what its unit tests say', async () => {
    assert.equal(await unitTest(), '')
  })

  test('has only fields that four minor versions of Kubernetes know', async () => {
    const versions = kubernetesVersions()
    assert.equal(new Set(versions.map((version) => version.split('.')[1])).size, 4)
    // A field that the oldest and the newest have is in those between them; the night asks all.
    const ends = [...versions.slice(0, 1), ...versions.slice(-1)]
    assert.equal(await conform(IS_LONG ? versions : ends, { values: Object.values(CI_VALUES) }), '')
  })
})

describe('a planted mistake is seen', { skip: WITHOUT_HELM }, () => {
  const DEFAULT = CI_VALUES.default ?? ''
  const newest = () => kubernetesVersions().slice(-1)

  test('of the type of a field', async () => {
    const good = 'containerPort: {{ $document.listen.port }}'
    await using chart = await plantInChart('templates/gateway/deployment.yaml', good, 'containerPort: x80')
    const found = await conform(newest(), { chart: chart.path, values: [DEFAULT] })
    assert.match(found, /containerPort.*want integer/)
  })

  test('of the name of a field', async () => {
    await using chart = await plantInChart('templates/redis/statefulset.yaml', 'serviceName:', 'servicename:')
    assert.match(await conform(newest(), { chart: chart.path, values: [DEFAULT] }), /servicename/)
  })

  test('of a template that renders, but not as it should', async () => {
    await using chart = await plantInChart(
      'templates/gateway/deployment.yaml',
      'maxUnavailable: 0',
      'maxUnavailable: 1',
    )
    assert.match(await unitTest(chart.path, 'gateway_test.yaml'), /replaces one gateway after the other/)
  })

  test('of a capability too many', async () => {
    await using chart = await plantInChart(
      'templates/appliance/daemonset.yaml',
      '"NET_RAW"',
      '"NET_RAW" "SYS_ADMIN"',
    )
    assert.match(await unitTest(chart.path, 'appliance_test.yaml'), /give a capability to the recorder alone/)
  })

  test('of a default that the schema of the values refuses', async () => {
    await using chart = await plantInChart('values.yaml', 'replicas: 3', 'replicas: three')
    assert.match(await lint(chart.path, DEFAULT), /gateway\/replicas.*want integer/)
  })

  test('of a value that the schema does not know', async () => {
    await using chart = await plantInChart('values.yaml', 'worker:\n', 'worker:\n  replica: 3\n')
    assert.match(await lint(chart.path, DEFAULT), /worker.*'replica' not allowed/)
  })
})
