// A gateway is killed while it serves downloads: its audit stays valid and has every download that ended.
//
//   AUDIT_KILLS=200   more kills
import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { listChains } from '../../../src/gateway/audit/audit-files.ts'
import { verifyAudit } from '../../../src/gateway/audit/verify-audit.ts'
import { type AuditEntry, auditEntries } from '../../support/access/temp-audit.ts'
import { httpGet } from '../../support/http-get.ts'
import { makePacket, makePcap } from '../../support/packets/packet-maker.ts'
import { pause } from '../../support/pause.ts'
import { type TempClient, tempClient } from '../../support/processes/client-process.ts'
import { GATEWAY_CREDENTIALS, GatewayProcess } from '../../support/processes/gateway-process.ts'
import { startTempAppliance } from '../../support/processes/temp-appliance.ts'
import { TempRedis } from '../../support/processes/temp-redis.ts'
import { seededRandom } from '../../support/seeded-random.ts'
import { tempFolder } from '../../support/temp-folder.ts'
import { TEST_LIMIT_MS } from '../../support/test-limits.ts'

const KILLS = Number(process.env.AUDIT_KILLS ?? 2)
const CLIENTS = 6
const PACKETS = 400
const START_NS = 1_790_000_000_000_000_000n
const [, PASSWORD = ''] = GATEWAY_CREDENTIALS.split(':')

/** A download whose client saw a clean end. */
interface Finished {
  readonly id: string
  readonly bytes: number
}

describe(`a gateway is killed ${KILLS} times`, { timeout: TEST_LIMIT_MS + KILLS * 20_000 }, () => {
  const parts = new AsyncDisposableStack()
  let gateway: GatewayProcess
  let client: TempClient
  let audit = ''
  let config = ''

  before(async () => {
    const folder = parts.use(await tempFolder())
    const redis = parts.use(await TempRedis.create())
    await redis.settle('capfleet')
    const devices: Record<string, unknown>[] = []
    const environment: Record<string, string> = {}
    for (const name of ['east', 'west']) {
      const appliance = parts.use(await startTempAppliance())
      const path = join(appliance.folder, 'small.pcap')
      const packets = Array.from({ length: PACKETS }, (_, i) =>
        makePacket(START_NS + BigInt(i) * 1_000_000n, `${name} ${i}`, 800),
      )
      await writeFile(path, makePcap(packets))
      await appliance.importFiles('small', path)
      const [user, password = ''] = appliance.credentials('user').split(':')
      environment[`PASSWORD_OF_${name}`] = password
      devices.push({ name, url: appliance.url, user, password: { env: `PASSWORD_OF_${name}` } })
    }
    const settings = { redis: { url: redis.url }, devices, audit: { name: 'test', fileBytes: 65_536 } }
    const options = { folder: folder.path, name: 'gateway', config: settings, environment }
    gateway = parts.use(await GatewayProcess.start(options))
    audit = join(folder.path, 'gateway', 'audit')
    config = join(folder.path, 'gateway.yaml')
    client = parts.use(await tempClient())
  })
  after(() => parts.disposeAsync())

  const finished: Finished[] = []

  /** Downloads one after another, some from one device, some from both, until it is told to stop. */
  const downloadUntil = async (stop: AbortSignal): Promise<void> => {
    const range = `TSBegin=${START_NS}&TSEnd=${START_NS + 1_000_000_000n}`
    for (let turn = 0; !stop.aborted; turn += 1) {
      const device = ['&Device=east', '&Device=west', ''][turn % 3]
      try {
        const url = `${gateway.url}/api/v1/pcap/timerange?${range}${device}&Wait=1`
        const { status, headers, body } = await httpGet(url, { user: GATEWAY_CREDENTIALS })
        if (status === 200) finished.push({ id: String(headers['capfleet-request-id']), bytes: body.length })
      } catch {
        // The gateway was killed; it will be back soon.
        await pause(20, 'the gateway is away, a client tries again')
      }
    }
  }

  test('the audit holds, and each download that a client saw end has its start and its end', async (t) => {
    const random = seededRandom()
    t.diagnostic(`SEED=${random.seed}`)
    const stop = new AbortController()
    const clients = Array.from({ length: CLIENTS }, () => downloadUntil(stop.signal))
    for (let kill = 0; kill < KILLS; kill += 1) {
      const before = finished.length
      while (finished.length < before + 10) await pause(5, 'downloads end')
      await pause(random.integer(0, 100), 'it is killed at any moment')
      await gateway.signal('SIGKILL')
      await gateway.start()
    }
    stop.abort()
    await Promise.all(clients)

    const { chains, isWhole } = await verifyAudit(audit)
    assert.ok(isWhole, JSON.stringify(chains))
    assert.equal(chains.length, 1, 'one chain over all processes')
    const entries = await auditEntries(audit)
    assert.equal(entries.filter(({ event }) => event === 'audit.opened').length, KILLS + 1)
    const byRequest = Map.groupBy(entries, ({ requestId }) => requestId)
    const eventsOf = (id: string): readonly AuditEntry[] => byRequest.get(id) ?? []
    for (const { id, bytes } of finished) {
      const events = eventsOf(id)
      assert.deepEqual(
        events.map(({ event }) => event),
        ['download.begin', 'download.end'],
        id,
      )
      assert.deepEqual([events[1]?.outcome, events[1]?.bytes], ['complete', String(bytes)])
    }
    const counts = Map.groupBy(entries, ({ event }) => event)
    const count = (event: string): number => counts.get(event)?.length ?? 0
    assert.ok(count('download.begin') >= count('download.end'))
    t.diagnostic(
      `${finished.length} downloads ended, ${count('download.begin') - count('download.end')} were killed, ` +
        `${count('audit.recovered')} lines were torn, ${chains[0]?.files} files`,
    )
    assert.ok(!(await allText()).includes(PASSWORD))
  })

  const allText = async (): Promise<string> => {
    const files = [...(await listChains(audit)).values()].flat()
    return (await Promise.all(files.map(({ path }) => readFile(path, 'utf8')))).join('')
  }

  test('capfleet audit verify confirms it, and finds a byte that is flipped', async () => {
    await gateway.signal('SIGTERM')
    const whole = await client.run(['audit', 'verify', '--config', config])
    assert.equal(whole.status, 0, whole.stderr)
    const [end = ''] = /test\.gateway:\d+:[0-9a-f]{64}/.exec(whole.stdout.toString()) ?? []
    const noted = await client.run(['audit', 'verify', '--folder', audit, '--expect', end])
    assert.equal(noted.status, 0, noted.stdout.toString())

    const [file] = (await listChains(audit)).get('test.gateway') ?? []
    const path = file?.path ?? ''
    const original = await readFile(path)
    const changed = Buffer.from(original)
    const at = Math.floor(original.length / 2)
    changed[at] = (changed[at] ?? 0) ^ 0x01
    await writeFile(path, changed)
    const line = original.subarray(0, at).toString('latin1').split('\n').length
    const begin = original.lastIndexOf('\n', at - 1) + 1
    const { status, stdout } = await client.run(['audit', 'verify', '--folder', audit])
    assert.equal(status, 1)
    assert.match(
      stdout.toString(),
      new RegExp(`^altered  test\\.gateway\\.\\d+\\.jsonl:${line} \\(byte ${begin}\\): `),
    )
    await writeFile(path, original)
  })

  test('capfleet audit verify requires a folder that exists', async () => {
    const without = await client.run(['audit', 'verify'])
    assert.equal(without.status, 2)
    assert.match(without.stderr, /--folder/)
    const nowhere = await client.run(['audit', 'verify', '--folder', join(audit, 'nowhere')])
    assert.equal(nowhere.status, 1)
    assert.match(nowhere.stderr, /cannot be read/)
    const empty = await client.run(['audit', 'verify', '--folder', client.folder])
    assert.deepEqual([empty.status, empty.stdout.toString()], [1, 'there is no audit in this folder\n'])
  })
})
