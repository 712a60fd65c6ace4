// Gateways of a release accept each other's sessions and tickets, although each pod creates its own users file.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdir, writeFile } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { FLEET_RANGE, startFakeFleet } from '../support/devices/fake-fleet.ts'
import { type Manifest, render, WITHOUT_HELM } from '../support/helm/chart.ts'
import { httpGet } from '../support/http-get.ts'
import { startTempGateway } from '../support/processes/temp-gateway.ts'
import { TempRedis } from '../support/processes/temp-redis.ts'
import { REPOSITORY_ROOT } from '../support/repository-files.ts'
import { tempFolder } from '../support/temp-folder.ts'

const RANGE = `/api/v1/pcap/timerange?${FLEET_RANGE}`
const MOUNTS = '/etc/capfleet'

interface Deployment extends Manifest {
  readonly spec: {
    readonly template: {
      readonly spec: { readonly initContainers: readonly { readonly command: readonly string[] }[] }
    }
  }
}

/** The files of a Secret. */
function filesOf(manifests: readonly Manifest[], name: string): Readonly<Record<string, Buffer>> {
  const { data = {} } = manifests.find((one) => one.kind === 'Secret' && one.metadata.name === name) ?? {}
  return Object.fromEntries(Object.entries(data).map(([key, text]) => [key, Buffer.from(text, 'base64')]))
}

async function writeFiles(folder: string, files: Readonly<Record<string, Buffer>>): Promise<void> {
  await mkdir(folder, { recursive: true })
  for (const [name, bytes] of Object.entries(files)) await writeFile(join(folder, name), bytes)
}

/** Runs the init container of a gateway's pod with its mounts below `pod`, and returns the gateway's settings. */
async function preparePod(pod: string, manifests: readonly Manifest[]): Promise<{ readonly auth: object }> {
  const [users, keys] = [join(pod, 'users'), join(pod, 'secrets', 'token-keys')]
  await mkdir(users, { recursive: true })
  await writeFiles(join(pod, 'secrets', 'login'), filesOf(manifests, 'fleet-capfleet-first-user'))
  await writeFiles(keys, filesOf(manifests, 'fleet-capfleet-token-keys'))
  const { spec } = manifests.find(({ kind }) => kind === 'Deployment') as Deployment
  const [program = '', ...args] = spec.template.spec.initContainers[0]?.command ?? []
  const here = args.map((text) => text.replaceAll(MOUNTS, pod))
  const PATH = [join(REPOSITORY_ROOT, 'src'), process.env.PATH].join(delimiter)
  await promisify(execFile)(program, here, { env: { ...process.env, PATH } })
  return { auth: { users: join(users, 'users.yaml'), tokens: { keys } } }
}

test('a session and a ticket of one gateway are taken by the others', { skip: WITHOUT_HELM }, async () => {
  await using owned = new AsyncDisposableStack()
  const folder = owned.use(await tempFolder())
  const manifests = await render()
  const redis = owned.use(await TempRedis.create())
  const fleet = await startFakeFleet(10)
  for (const device of fleet) owned.use(device)
  const urls: string[] = []
  for (const name of ['one', 'two', 'three']) {
    const settings = await preparePod(join(folder.path, name), manifests)
    urls.push(owned.use(await startTempGateway(fleet, redis.url, settings)).url)
  }
  const { username, password } = filesOf(manifests, 'fleet-capfleet-first-user')
  const authorization = `Basic ${btoa(`${username}:${password}`)}`

  const [first = ''] = urls
  const signedIn = await httpGet(`${first}/v1/session`, { method: 'POST', headers: { authorization } })
  assert.equal(signedIn.status, 201, signedIn.body.toString())
  const [cookie = ''] = (signedIn.headers['set-cookie']?.[0] ?? '').split(';')
  const changing = { cookie, 'x-capfleet-form': String(signedIn.json().formToken) }
  for (const url of urls) {
    const shown = await httpGet(`${url}/v1/session`, { headers: { cookie } })
    assert.equal(shown.status, 200, shown.body.toString())
    const target = `${first}/v1/tickets?For=${encodeURIComponent(RANGE)}`
    const ticket = await httpGet(target, { method: 'POST', headers: changing })
    assert.equal(ticket.status, 201, ticket.body.toString())
    assert.equal((await httpGet(`${url}${ticket.json().url}`)).status, 200)
  }
})
