/**
 * Devices that break HTTP, their promises or their files, behind a real gateway. No incomplete download ends cleanly:
 * fetch, curl, and tcpdump behind curl see every other end as a failure, directly and through nginx.
 *
 *   HOSTILE_DOWNLOADS=<n>   number of downloads (800 in npm test; 12800 is the long run, with every client for each)
 *   SEED=<n>                repeats a run
 *
 * A device that announces no completion trailer and ends normally just after a whole record (or gzip member, or zstd
 * frame) cannot be distinguished from an honest one. The cut points of that behaviour are moved off such places.
 */
import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { SIMULATED_BEGIN_NS } from '../../support/devices/simulated-capture.ts'
import {
  deceptiveBytes,
  HOSTILE_NAMES,
  isIncomplete,
  makeBombs,
} from '../../support/hostile/hostile-behaviours.ts'
import { HOSTILE_SIZES, honestFile, honestMerge } from '../../support/hostile/hostile-case.ts'
import type { HostileDevice } from '../../support/hostile/hostile-device.ts'
import {
  GROUP_DEVICES,
  type HostileDownload,
  type HostileFleet,
  hostileDownload,
  startHostileFleet,
} from '../../support/hostile/hostile-fleet.ts'
import { curlWitness, decoded, fetchWitness, type Witnessed } from '../../support/hostile/hostile-witness.ts'
import { startTempNginx, WITHOUT_NGINX } from '../../support/processes/temp-proxy.ts'
import { seededRandom } from '../../support/seeded-random.ts'
import { tempFolder } from '../../support/temp-folder.ts'
import { TEST_LIMIT_MS } from '../../support/test-limits.ts'

const DOWNLOADS = Number(process.env.HOSTILE_DOWNLOADS ?? 800)
const GROUPS = 8
/** Devices in a group: as many as a device serves streams at once. */
const CLIENTS = 4
/** In the short run, one in this many downloads goes through curl, and as many through nginx. */
const SAMPLE = DOWNLOADS > 800 ? 1 : 20
/** By curl and by fetch, each directly and through nginx. */
const CLIENT_KINDS = 4
const HOUR_NS = 3_600_000_000_000n

interface Stage extends AsyncDisposable {
  readonly fleet: HostileFleet
  readonly folder: string
  readonly nginxUrl: string | undefined
}

describe('hostile devices', { timeout: TEST_LIMIT_MS + DOWNLOADS * 700 }, () => {
  test(`${DOWNLOADS} downloads: none ends cleanly and is not whole, every failure is seen`, async (t) => {
    const random = seededRandom()
    t.diagnostic(`SEED=${random.seed}`)
    await using stage = await setStage(random.seed)
    const mistakes: unknown[] = []
    const ends = new Map<string, number>()
    let next = 0
    const client = async (devices: readonly HostileDevice[]): Promise<void> => {
      while (next < DOWNLOADS) {
        const number = next
        next += 1
        const asked = hostileDownload(number, random, HOSTILE_SIZES)
        for (const seen of await witness(stage, devices, { number, asked })) {
          const mistake = mistakeIn(seen, asked)
          const end = mistake ?? (seen.bytes === undefined ? 'failed' : 'complete')
          ends.set(`${asked.way} ${end}`, (ends.get(`${asked.way} ${end}`) ?? 0) + 1)
          if (mistake !== undefined)
            mistakes.push({ mistake, client: seen.client, failure: seen.failure, ...asked })
        }
      }
    }
    await Promise.all(
      stage.fleet.groups.flatMap((group) => Array.from({ length: CLIENTS }, () => client(group))),
    )
    tell(t, ends, mistakes)
    assert.equal(await stage.fleet.gateway.death(), undefined, 'the gateway has lived through all of it')
    assert.equal(mistakes.length, 0, JSON.stringify(mistakes.slice(0, 10), null, 1))
  })

  test('negative control: a judge that is given a shorter file with a clean end complains', async () => {
    const asked: HostileDownload = {
      act: 'polite short end, nothing announced',
      again: 'hostile',
      way: 'relay',
      compression: 'none',
      index: 0,
      cut: 0.5,
      packets: 40,
    }
    const { bytes } = honestFile(0, 40, { compression: 'none', beginNs: SIMULATED_BEGIN_NS })
    const seen = { client: 'fetch', failure: '', readerNoticed: true }
    assert.equal(mistakeIn({ ...seen, bytes: bytes.subarray(0, -80) }, asked), 'clean end, wrong bytes')
    assert.equal(mistakeIn({ ...seen, bytes }, asked), 'clean end of an incomplete answer')
    assert.equal(mistakeIn({ ...seen, bytes }, { ...asked, act: 'polite' }), undefined)
    assert.equal(
      mistakeIn({ ...seen, bytes: undefined, readerNoticed: false }, asked),
      'a failure that the reader behind curl took for a whole file',
    )
    assert.equal(
      mistakeIn({ ...seen, bytes: undefined }, { ...asked, act: 'polite' }),
      'a whole file was lost',
    )
    assert.equal(mistakeIn({ ...seen, bytes: undefined }, asked), undefined)
  })
})

async function setStage(seed: number): Promise<Stage> {
  makeBombs()
  await using building = new AsyncDisposableStack()
  const folder = building.use(await tempFolder())
  const fleet = building.use(await startHostileFleet(GROUPS, seededRandom(seed)))
  const nginxUrl =
    WITHOUT_NGINX === false ? building.use(await startTempNginx(fleet.gateway.url)).url : undefined
  const owner = building.move()
  return { fleet, folder: folder.path, nginxUrl, [Symbol.asyncDispose]: () => owner.disposeAsync() }
}

/** Selects the behaviour, then downloads with one client or several. */
async function witness(
  { fleet, folder, nginxUrl }: Stage,
  devices: readonly HostileDevice[],
  { number, asked }: { readonly number: number; readonly asked: HostileDownload },
): Promise<readonly Witnessed[]> {
  const names = devices.map(({ name }) => name)
  const path = asked.way === 'relay' ? `/devices/${names[asked.index]}` : ''
  const chosen = asked.way === 'relay' ? '' : `Device=${names.join()}&`
  const place = { folder, name: String(number), compression: asked.compression }
  const { url } = fleet.gateway
  const clients: ((target: string) => Promise<Witnessed>)[] = []
  const turn = Math.floor(number / HOSTILE_NAMES.length) + number
  if (turn % SAMPLE === 0) clients.push((target) => curlWitness(url + target, place))
  if (turn % SAMPLE === 1 % SAMPLE && nginxUrl !== undefined)
    clients.push(async (target) => behindNginx(await curlWitness(nginxUrl + target, place)))
  if (turn % SAMPLE === 2 % SAMPLE && nginxUrl !== undefined)
    clients.push(async (target) => behindNginx(await fetchWitness(nginxUrl + target)))
  if (clients.length === 0 || SAMPLE === 1) clients.push((target) => fetchWitness(url + target))
  const seen: Witnessed[] = []
  for (const [turnOfClient, client] of clients.entries()) {
    // Each download must end here: a request that the gateway gave up may reach the device during the next client's
    // download.
    const endNs = SIMULATED_BEGIN_NS + HOUR_NS + BigInt(number * CLIENT_KINDS + turnOfClient)
    const query = `TSBegin=${SIMULATED_BEGIN_NS}&TSEnd=${endNs}&Compression=${asked.compression}&Wait=55`
    for (const [index, device] of devices.entries())
      device.order(endNs, { ...asked, act: index === asked.index ? asked.act : 'polite' })
    seen.push(await client(`${path}/api/v1/pcap/timerange?${chosen}${query}`))
  }
  return seen
}

function behindNginx(seen: Witnessed): Witnessed {
  return { ...seen, client: `${seen.client} behind nginx` }
}

/** What is wrong with what the client saw, or undefined if nothing is. */
function mistakeIn({ bytes, readerNoticed }: Witnessed, asked: HostileDownload): string | undefined {
  if (!readerNoticed) return 'a failure that the reader behind curl took for a whole file'
  if (bytes === undefined) return asked.act === 'polite' ? 'a whole file was lost' : undefined
  if (!isRight(bytes, asked)) return 'clean end, wrong bytes'
  const mayBeMended = asked.way === 'merge' && asked.again === 'honest'
  return isIncomplete(asked.act) && !mayBeMended ? 'clean end of an incomplete answer' : undefined
}

function isRight(bytes: Buffer, { act, way, compression, index, cut, packets }: HostileDownload): boolean {
  if (way === 'merge')
    return decoded(bytes, compression)?.equals(honestMerge(GROUP_DEVICES, packets)) === true
  const file = honestFile(index, packets, { compression, beginNs: SIMULATED_BEGIN_NS })
  const scene = { file, cut, compression, elsewhere: '' }
  return bytes.equals(deceptiveBytes(act, scene) ?? file.bytes)
}

function tell(t: TestContext, ends: ReadonlyMap<string, number>, mistakes: readonly unknown[]): void {
  t.diagnostic([...ends].map(([end, count]) => `${end} ${count}`).join(', '))
  const kinds = Map.groupBy(
    mistakes as { mistake: string; act: string; way: string; compression: string }[],
    (m) => [m.mistake, m.way, m.compression, m.act].join(' | '),
  )
  for (const [kind, list] of kinds) t.diagnostic(`${list.length} x ${kind}`)
}
