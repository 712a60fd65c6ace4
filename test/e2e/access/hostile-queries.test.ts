// A caller cannot hide a download from the audit: whatever surrounds the query, the download's line has the devices,
// the range or the capture, the filter and the forced filter.
//
//   AUDIT_QUERIES=<n>   number of queries; `npm run access` sets 10000
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { httpGet } from '../../support/http-get.ts'
import {
  SMALL_FLEET_START_NS,
  type SmallFleet,
  startSmallFleet,
} from '../../support/processes/small-fleet.ts'
import { seededRandom } from '../../support/seeded-random.ts'
import { TEST_LIMIT_MS } from '../../support/test-limits.ts'

const QUERIES = Number(process.env.AUDIT_QUERIES ?? 60)
const FORCED = 'less 1000'
const DEVICES = ['east', 'west'] as const
const FILTERS = ['udp', 'udp port 9', 'ip and not tcp', 'greater 20 or less 90'] as const
/** Texts that hid, or could hide, the rest of a query. */
const NOISE: readonly ((random: ReturnType<typeof seededRandom>) => string)[] = [
  () => 'rand=://&x=@',
  () => 'rand=https://a:b&y=c@d',
  () => 'password=secret',
  () => 'token=eyJhbGciOiJub25lIn0.e30.e30',
  (random) => `rand=${'A'.repeat(random.integer(1, 6_000))}`,
  (random) => `z=${'%41'.repeat(random.integer(1, 1_500))}`,
  (random) => Array.from({ length: random.integer(1, 60) }, (_, i) => `n${i}=${i}`).join('&'),
  () => 'line=%0a%7B%22event%22%3A%22nothing%22%7D',
  () => 'nul=%00&quote=%22%5C%22',
  () => 'utf=%F0%9F%92%A3%E2%80%AE',
]

const random = seededRandom()

interface Asked {
  readonly path: string
  readonly requestId: string
  readonly facts: Readonly<Record<string, unknown>>
}

describe(`the audit of hostile queries (SEED=${random.seed})`, () => {
  let fleet: SmallFleet
  before(async () => {
    fleet = await startSmallFleet([{ name: 'mallory', role: 'user', filter: FORCED }])
  })
  after(() => fleet?.[Symbol.asyncDispose]())

  test(`${QUERIES} downloads each have their facts in their line`, {
    timeout: TEST_LIMIT_MS + QUERIES * 100,
  }, async (t) => {
    const asked: Asked[] = []
    while (asked.length < QUERIES) {
      const { path, facts } = madeUpQuery()
      const answer = await httpGet(fleet.gateway.url + path, { headers: fleet.gateway.basic('mallory') })
      // For example a parameter given twice: nothing was downloaded.
      if (answer.status === 400) continue
      assert.equal(answer.status, 200, `${answer.body} ${path}`)
      asked.push({ path, facts, requestId: String(answer.headers['capfleet-request-id']) })
    }
    const lines = await linesOf('download.begin')
    for (const { path, requestId, facts } of asked) {
      const line = lines.get(requestId)
      assert.ok(line, `no line for ${path}`)
      const { user, devices, kind, beginNs, endNs, capture, filters, forcedFilters } = line
      assert.deepEqual({ user, devices, kind, beginNs, endNs, capture, filters, forcedFilters }, facts, path)
    }
    t.diagnostic(
      `${asked.length} queries of ${asked.reduce((sum, { path }) => sum + path.length, 0)} characters`,
    )
  })

  /** The audit lines of an event, by request id. */
  async function linesOf(event: string): Promise<ReadonlyMap<string, Readonly<Record<string, unknown>>>> {
    const lines = new Map<string, Readonly<Record<string, unknown>>>()
    for (let after = ''; ; ) {
      const path = `/v1/audit?Event=${event}&Limit=1000${after}`
      const page = (await httpGet(fleet.gateway.url + path, { headers: fleet.gateway.as.admin })).json()
      for (const entry of page.entries as readonly Readonly<Record<string, unknown>>[])
        lines.set(String(entry.requestId), entry)
      if (page.next === null) return lines
      after = `&After=${encodeURIComponent(String(page.next))}`
    }
  }
})

function madeUpQuery(): Pick<Asked, 'path' | 'facts'> {
  const filter = random.pick(FILTERS)
  const given = [`FilterBPF=${encodedOddly(filter)}`]
  const common = { user: 'mallory', filters: { FilterBPF: filter }, forcedFilters: [FORCED] }
  const device = random.pick(DEVICES)
  let path: string
  let facts: Readonly<Record<string, unknown>>
  if (random.next() < 0.3) {
    path = random.next() < 0.5 ? `/devices/${device}/api/v1/pcap/single` : '/api/v1/pcap/single'
    const capture = `${device}-first`
    given.push(`StreamName=${encodedOddly(capture)}`)
    facts = { ...common, devices: [device], kind: 'single', capture, beginNs: undefined, endNs: undefined }
  } else {
    const beginNs = SMALL_FLEET_START_NS + BigInt(random.integer(0, 20_000_000))
    const endNs = beginNs + BigInt(random.integer(1, 1_000_000_000))
    const isFleet = random.next() < 0.5
    path = isFleet ? '/api/v1/pcap/timerange' : `/devices/${device}/api/v1/pcap/timerange`
    given.push(`TSBegin=${beginNs}`, `TSEnd=${endNs}`, 'TSUnit=nanos')
    const devices = isFleet ? [...DEVICES] : [device]
    facts = {
      ...common,
      devices,
      kind: 'timerange',
      capture: undefined,
      beginNs: `${beginNs}`,
      endNs: `${endNs}`,
    }
  }
  for (let noise = random.integer(1, 4); noise > 0; noise--)
    given.splice(random.integer(0, given.length), 0, random.pick(NOISE)(random))
  return { path: `${path}?${given.join('&')}`, facts }
}

/** Any of its characters may be percent-encoded. */
function encodedOddly(text: string): string {
  return [...text]
    .map((character) =>
      /[a-z0-9]/.test(character) && random.next() < 0.7
        ? character
        : `%${character.charCodeAt(0).toString(16).padStart(2, '0')}`,
    )
    .join('')
}
