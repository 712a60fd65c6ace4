// The chart in a Kubernetes whose pods do not really run: admitted, installed, upgraded, rolled back and uninstalled.
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { watchEndpointSlices } from '../../src/gateway/fleet/roster/endpoint-slice-watch.ts'
import { devicesOfSlices, type EndpointSlice } from '../../src/gateway/fleet/roster/endpoint-slices.ts'
import { CHART, CI_VALUES, plantInChart, type Rendering, render } from '../support/helm/chart.ts'
import { helm, kubectl } from '../support/kubernetes/cluster.ts'
import { crdsOfOperators, namespaces, volumes } from '../support/kubernetes/cluster-objects.ts'
import { type FakeCluster, startFakeCluster } from '../support/kubernetes/fake-cluster.ts'
import { tempFolder } from '../support/temp-folder.ts'

let cluster: FakeCluster
const ask = (...args: string[]) => kubectl('--kubeconfig', cluster.kubeconfig, ...args)
const askJson = async (...args: string[]) => JSON.parse(await ask(...args, '-o', 'json'))
const chart = (...args: string[]) => helm('--kubeconfig', cluster.kubeconfig, ...args)

/** The namespace of the appliances: hostNetwork needs the level "privileged". */
const CAPTURE = 'capture'
const WAIT = ['--wait', '--timeout', '120s']

async function apply(objects: readonly object[], ...options: string[]): Promise<string> {
  await using folder = await tempFolder()
  const path = join(folder.path, 'objects.json')
  await writeFile(path, JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects }))
  return await ask('apply', '-f', path, ...options)
}

/** Submits all objects to an API at the level "restricted"; fails with the API's message. */
async function dryRun(rendering: Rendering): Promise<void> {
  const manifests = await render({ ...rendering, set: [`appliance.namespace=${CAPTURE}`] })
  const objects = manifests.map((manifest) => ({
    ...manifest,
    metadata: { namespace: 'captures', ...manifest.metadata },
  }))
  const strict = ['--server-side', '--dry-run=server', '--validate=strict', '--warnings-as-errors']
  await apply(objects, ...strict)
}

before(async () => {
  cluster = await startFakeCluster()
  const cases = Object.keys(CI_VALUES).map((name) => `case-${name}`)
  await apply([
    ...crdsOfOperators(),
    ...namespaces({ restricted: [...cases, 'life', 'captures'], privileged: [CAPTURE] }),
  ])
  await ask('wait', '--for=condition=Established', 'crd', '--all', '--timeout=60s')
  await apply(volumes(40))
})

after(() => cluster[Symbol.asyncDispose]())

describe('each of the chart’s files of values', () => {
  for (const [name, path] of Object.entries(CI_VALUES)) {
    const own = ['--values', path, '--set', `appliance.namespace=${CAPTURE}`]

    test(`${name}: is taken by the API as it is, at the level "restricted"`, async () => {
      await dryRun({ values: [path] })
    })

    test(`${name}: is installed, ready, and leaves only claims`, async () => {
      const namespace = `case-${name}`
      if (name === 'ingress') await apply([existingClaim(namespace)])
      await chart('install', name, CHART, '-n', namespace, ...own, ...WAIT)
      await chart('uninstall', name, '-n', namespace, ...WAIT)
      assert.deepEqual(
        (await leftOf(name)).filter((left) => !left.startsWith('persistentvolumeclaim/')),
        [],
      )
    })
  }
})

describe('a planted mistake is rejected that the schemas of Kubernetes accept', () => {
  test('a container that may become more than it is', async () => {
    const hardened = 'allowPrivilegeEscalation: false'
    await using planted = await plantInChart(
      'templates/_pods.tpl',
      hardened,
      'allowPrivilegeEscalation: true',
    )
    await assert.rejects(dryRun({ chart: planted.path }), /allowPrivilegeEscalation != false/)
  })

  test('a mount of a volume that is not there', async () => {
    const mount = '- name: home\n  mountPath'
    await using planted = await plantInChart(
      'templates/_program-volumes.tpl',
      mount,
      mount.replace('home', 'hom'),
    )
    await assert.rejects(dryRun({ chart: planted.path }), /volumeMounts\[\d+\].name: Not found: "hom"/)
  })
})

describe('the life of a release', () => {
  const NAMESPACE = 'life'
  const inFleet = (...args: string[]) => askJson('get', '-n', NAMESPACE, ...args)
  const PODS = ['pods', '-l', 'app.kubernetes.io/component=gateway']
  const SET = ['--set', `appliance.namespace=${CAPTURE},gateway.terminationGracePeriodSeconds=40`]
  const uids = async () => namesOf(await inFleet(...PODS), 'uid')
  const secret = async (name: string) => (await inFleet('secret', `fleet-capfleet-${name}`)).data

  before(() => chart('install', 'fleet', CHART, '-n', NAMESPACE, ...SET, ...WAIT))

  test('three gateways are on three nodes, and one of them may be removed', async () => {
    const pods = (await inFleet(...PODS)).items
    assert.equal(new Set(pods.map(({ spec }: { spec: { nodeName: string } }) => spec.nodeName)).size, 3)
    const { status } = await inFleet('pdb', 'fleet-capfleet-gateway')
    assert.deepEqual([status.expectedPods, status.currentHealthy, status.disruptionsAllowed], [3, 3, 1])
  })

  test('an appliance is on each of three nodes, and the gateway finds them with its own rights', async () => {
    const { status } = await askJson('get', '-n', CAPTURE, 'daemonset', 'fleet-capfleet-appliance')
    assert.deepEqual([status.desiredNumberScheduled, status.numberReady], [3, 3])
    const found = await devicesFoundBy('fleet-capfleet-gateway')
    assert.deepEqual(found, ['node-0', 'node-1', 'node-2'])
  })

  test('the gateway may read nothing more', async () => {
    const account = ['--as', `system:serviceaccount:${NAMESPACE}:fleet-capfleet-gateway`]
    const may = (...what: string[]) =>
      ask('auth', 'can-i', ...what, ...account).then(
        (answer) => answer.trim(),
        () => 'no',
      )
    assert.equal(await may('watch', 'endpointslices.discovery.k8s.io', '-n', CAPTURE), 'yes')
    assert.equal(await may('list', 'secrets', '-n', CAPTURE), 'no')
    assert.equal(await may('list', 'pods', '-n', CAPTURE), 'no')
    assert.equal(await may('list', 'endpointslices.discovery.k8s.io', '-n', NAMESPACE), 'no')
  })

  test('an upgrade that changes nothing leaves pods, passwords and keys alone', async () => {
    const [pods, user, keys, redis] = [
      await uids(),
      await secret('first-user'),
      await secret('token-keys'),
      await secret('redis'),
    ]
    await chart('upgrade', 'fleet', CHART, '-n', NAMESPACE, ...SET, ...WAIT)
    assert.deepEqual(await uids(), pods)
    assert.deepEqual(
      [await secret('first-user'), await secret('token-keys'), await secret('redis')],
      [user, keys, redis],
    )
    const [here, there] = await Promise.all(
      [NAMESPACE, CAPTURE].map((namespace) =>
        askJson('get', '-n', namespace, 'secret', 'fleet-capfleet-fleet-login'),
      ),
    )
    assert.equal(here.data.password, there.data.password)
  })

  test('a changed document replaces all gateways and no appliance; a rollback brings the old one back', async () => {
    const [pods, appliances] = [await uids(), namesOf(await askJson('get', '-n', CAPTURE, 'pods'), 'uid')]
    const document = async () => (await inFleet('configmap', 'fleet-capfleet-gateway')).data['gateway.yaml']
    const old = await document()
    await chart(
      'upgrade',
      'fleet',
      CHART,
      '-n',
      NAMESPACE,
      ...SET,
      '--set',
      'config.downloads.waitS=9',
      ...WAIT,
    )
    assert.match(await document(), /waitS: 9/)
    assert.deepEqual(
      (await uids()).filter((uid) => pods.includes(uid)),
      [],
    )
    assert.deepEqual(namesOf(await askJson('get', '-n', CAPTURE, 'pods'), 'uid'), appliances)
    await chart('rollback', 'fleet', '2', '-n', NAMESPACE, ...WAIT)
    assert.equal(await document(), old)
  })

  test('uninstalled, only the volume of Redis is left', async () => {
    await chart('uninstall', 'fleet', '-n', NAMESPACE, ...WAIT)
    assert.deepEqual(await leftOf('fleet'), ['persistentvolumeclaim/data-fleet-capfleet-redis-0'])
  })

  /** The names of three devices, found by the program's own watch with the rights of a service account. */
  async function devicesFoundBy(account: string): Promise<readonly string[]> {
    await using folder = await tempFolder()
    const tokenFile = join(folder.path, 'token')
    await writeFile(tokenFile, await ask('create', 'token', account, '-n', NAMESPACE))
    const { apiUrl: url, caFile } = cluster
    const labelSelector = 'kubernetes.io/service-name=fleet-capfleet-appliance'
    const settings = {
      url,
      namespace: CAPTURE,
      labelSelector,
      port: 'http',
      nameBy: 'node',
      tokenFile,
      caFile,
    } as const
    const end = new AbortController()
    const found = new Promise<readonly string[]>((resolve, reject) => {
      const onSlices = (slices: Iterable<EndpointSlice>) => {
        const names = devicesOfSlices(slices, settings).map(({ name }) => name)
        if (names.length === 3) resolve(names)
      }
      watchEndpointSlices(settings, onSlices, end.signal).catch(reject)
    })
    try {
      return await found
    } finally {
      end.abort()
    }
  }
})

interface Listed {
  readonly items: readonly {
    readonly metadata: { readonly name: string; readonly uid: string; readonly deletionTimestamp?: string }
  }[]
}

/** Pods that are not terminating. */
function namesOf({ items }: Listed, key: 'name' | 'uid'): readonly string[] {
  const staying = items.filter(({ metadata }) => metadata.deletionTimestamp === undefined)
  return staying.map(({ metadata }) => metadata[key]).sort()
}

/** The objects of a release, in all namespaces. */
async function leftOf(release: string): Promise<readonly string[]> {
  const kinds =
    'deployment,replicaset,statefulset,daemonset,pod,service,endpointslice,configmap,secret,serviceaccount,role,rolebinding,networkpolicy,' +
    'pdb,hpa,ingress,pvc,httproute,backendtlspolicy,servicemonitor,prometheusrule'
  const { items } = await askJson('get', kinds, '-A', '-l', `app.kubernetes.io/instance=${release}`)
  return (items as { kind: string; metadata: { name: string } }[]).map(
    ({ kind, metadata }) => `${kind.toLowerCase()}/${metadata.name}`,
  )
}

function existingClaim(namespace: string): object {
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name: 'fleet-storage', namespace },
    spec: { accessModes: ['ReadWriteMany'], resources: { requests: { storage: '10Gi' } } },
  }
}
