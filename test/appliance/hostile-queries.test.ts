// Whatever is in the query string, the answer is one of the table's, it comes soon, and no slot is lost.
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { APPLIANCE_ROUTES } from '../../appliance/appliance-routes.ts'
import { ERROR_KINDS } from '../../src/shared/base/error.ts'
import { eventually } from '../support/eventually.ts'
import { hostileQuery } from '../support/hostile/hostile-query.ts'
import { makePacket, makePcap } from '../support/packets/packet-maker.ts'
import { makePcapng } from '../support/packets/pcapng-maker.ts'
import { startTempAppliance, type TempAppliance } from '../support/processes/temp-appliance.ts'
import { seededRandom } from '../support/seeded-random.ts'
import { TEST_LIMIT_MS } from '../support/test-limits.ts'

/** Many more at night. */
const REQUESTS = Number(process.env.CAPFLEET_HOSTILE_REQUESTS ?? 1_500)
const CLIENTS = 8
const SLOW_MS = 1_000
const ENDING = '_20260921_1413'
/** The most work that a valid query causes: its duration shows how fast the machine is now. */
const HEAVIEST = `/api/v1/pcap/single?StreamName=hostile${ENDING}&Compression=zstd_ultra`
const random = seededRandom()

const PATHS = APPLIANCE_ROUTES.map(({ path }) => path)
/** Rare, because every start creates a capture, and thousands of captures are another test's subject. */
const CHANGES = APPLIANCE_ROUTES.filter(({ changes }) => changes !== undefined).map(({ path }) => path)
const CHANGE_SHARE = 0.01
/** A wait for a slot takes as long as the query says. */
const WAITS = /Wait=\d/

function randomPath(): string {
  const isChange = random.next() < CHANGE_SHARE
  const paths = PATHS.filter((path) => CHANGES.includes(path) === isChange)
  const path = random.pick(paths)
  const query = hostileQuery(random)
  // Only full names delete; the captures are needed to the end.
  return `${path}?${path === '/pcap/del' ? query.replaceAll(ENDING, '') : query}`
}

async function importCaptures(appliance: TempAppliance): Promise<void> {
  const records = Array.from({ length: 2_000 }, (_, index) => ({
    ...makePacket(1_790_000_000_000_000_000n + BigInt(index) * 500_000n, `hostile ${index}`, 200),
    port: index % 2,
  }))
  const path = join(appliance.folder, 'hostile.pcapng')
  await writeFile(path, makePcapng(2, records))
  await appliance.importFiles(`hostile${ENDING}`, path)
  await writeFile(join(appliance.folder, 'other.pcap'), makePcap(records.slice(0, 50)))
  await appliance.importFiles(`other${ENDING}`, join(appliance.folder, 'other.pcap'))
}

test(`${REQUESTS} hostile query strings: no 500, none slow, no slot lost (SEED=${random.seed})`, {
  timeout: TEST_LIMIT_MS + REQUESTS * 100,
}, async () => {
  await using appliance = await startTempAppliance()
  await importCaptures(appliance)
  const seen = new Map<string, number>()
  const count = (key: string): void => void seen.set(key, (seen.get(key) ?? 0) + 1)
  const slow: string[] = []
  let sent = 0
  const client = async (): Promise<void> => {
    while (sent < REQUESTS) {
      sent++
      const path = randomPath()
      const startedMs = performance.now()
      const answer = await appliance.ask(path)
      const isSlow = performance.now() - startedMs > SLOW_MS
      if (isSlow && !WAITS.test(path)) slow.push(path)
      const where = `SEED=${random.seed} ${path}`
      if (answer.status === 200) {
        count('200')
        continue
      }
      const { code, status, detail } = answer.json()
      count(String(code))
      assert.ok(Object.hasOwn(ERROR_KINDS, String(code)), `${code}: ${where}`)
      assert.equal(status, answer.status, where)
      assert.ok(answer.status < 500 || answer.status === 503, `${detail}: ${where}`)
    }
  }
  await Promise.all(Array.from({ length: CLIENTS }, client))
  for (const kind of [
    '200',
    'bad-parameter',
    'bad-bpf',
    'bad-regex',
    'bad-frame-filter',
    'unknown-capture',
  ]) {
    assert.ok((seen.get(kind) ?? 0) > 0, `no answer was ${kind}: ${JSON.stringify([...seen])}`)
  }
  await eventually(async () => (await appliance.slotsUsed()) === 0, { message: 'free slots' })
  assert.equal((await appliance.get('/api/v1/pcap/single?StreamName=other')).status, 200)
  await assertFastAlone(slow)
})

/**
 * Slow queries are repeated on a fresh appliance that has nothing else to do, to see whether the query was the cause.
 */
async function assertFastAlone(paths: readonly string[]): Promise<void> {
  if (paths.length === 0) return
  await using appliance = await startTempAppliance()
  await importCaptures(appliance)
  const time = async (path: string): Promise<{ status: number; tookMs: number }> => {
    const startedMs = performance.now()
    const { status } = await appliance.ask(path)
    return { status, tookMs: performance.now() - startedMs }
  }
  for (const path of paths) {
    const heaviest = await time(HEAVIEST)
    assert.equal(heaviest.status, 200)
    const limitMs = Math.max(SLOW_MS, 2 * heaviest.tookMs)
    // Other work on the machine may delay an answer once; a slow query is slow each time.
    let tookMs = Number.POSITIVE_INFINITY
    for (let round = 0; round < 3 && tookMs >= limitMs; round++)
      tookMs = Math.min(tookMs, (await time(path)).tookMs)
    assert.ok(tookMs < limitMs, `${tookMs} of ${limitMs} ms alone: SEED=${random.seed} ${path}`)
  }
}
