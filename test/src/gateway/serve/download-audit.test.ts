// The audit lines of downloads whose callers try to hide them: device, range, capture and filters of each are in its
// line. HIDDEN_DOWNLOADS=10000 runs more.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { NOBODY } from '../../../../src/gateway/audit/audit-events.ts'
import { planDownload } from '../../../../src/gateway/fleet/plan/plan.ts'
import { planFacts } from '../../../../src/gateway/fleet/plan/plan-facts.ts'
import { withinBounds } from '../../../../src/gateway/fleet/plan/within-bounds.ts'
import { DownloadAudit } from '../../../../src/gateway/serve/download-audit.ts'
import { parseDownloadQuery } from '../../../../src/shared/query/download/parse-download-query.ts'
import { parseQueryString } from '../../../../src/shared/query/parse-query-string.ts'
import { type AuditEntry, tempAudit } from '../../../support/access/temp-audit.ts'
import { type SeededRandom, seededRandom } from '../../../support/seeded-random.ts'

const QUERIES = Number(process.env.HIDDEN_DOWNLOADS ?? 150)
const AT_ONCE = 50
const FORCED = 'host 192.0.2.1 and (udp or token=secret or ://a@b)'

const HIDING = [
  '://',
  '@',
  '://me@there',
  'token=abc',
  '-----BEGIN PRIVATE KEY-----',
  'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhbm4ifQ.c2ln',
  'Bearer aaaaaaaaaaaaaaaa',
  'Basic ////////////////',
  '"password":"',
  '\\"',
  '","event":"audit.closed',
  '\u2028\u0000\n',
] as const
const HIDING_NAMES = ['rand', 'x', 'password', 'secret', 'token', 'access_token', '://', '"a":"']

interface Hidden {
  readonly query: string
  readonly kind: 'timerange' | 'splittime'
  readonly device: string
  readonly beginNs: bigint
  readonly capture: string | undefined
  readonly filter: string
}

/** A download between pairs that are long, look like secrets, or are encoded more than necessary. */
function hiddenDownload(random: SeededRandom, at: number): Hidden {
  const beginNs = 1_790_000_000_000_000_000n + BigInt(at)
  const kind = at % 2 === 0 ? 'timerange' : 'splittime'
  const capture = kind === 'splittime' ? `capture-${at}` : undefined
  const filter = `port ${at} or port 1`
  const [begin, end] = kind === 'timerange' ? ['TSBegin', 'TSEnd'] : ['Start', 'Stop']
  const asked: [string, string][] = [
    [begin, `${beginNs}`],
    [end, `${beginNs + 5n}`],
    ['FilterBPF', filter],
  ]
  if (capture !== undefined) asked.push(['StreamName', capture])
  const noise = Array.from({ length: random.integer(1, 20) }, (_, n): [string, string] => [
    `${HIDING_NAMES[random.integer(0, HIDING_NAMES.length - 1)]}${n}`,
    (HIDING[random.integer(0, HIDING.length - 1)] ?? '').repeat(random.integer(1, 12)),
  ])
  const pairs = [...asked, ...noise]
  for (let index = pairs.length - 1; index > 0; index -= 1) {
    const other = random.integer(0, index)
    const [one, two] = [pairs[index], pairs[other]]
    if (one !== undefined && two !== undefined) [pairs[index], pairs[other]] = [two, one]
  }
  const query = pairs.map(([name, value]) => `${encoded(name, random)}=${encoded(value, random)}`).join('&')
  return { query, kind, device: `device-${at % 7}`, beginNs, capture, filter }
}

/** Encoded as little as possible, as usual, or completely. */
function encoded(text: string, random: SeededRandom): string {
  const way = random.integer(0, 2)
  if (way === 0) return text.replaceAll(/[%&=+\0-\x20\u0080-\uffff]/g, (letter) => encodeURIComponent(letter))
  if (way === 1) return encodeURIComponent(text)
  return [...Buffer.from(text)].map((byte) => `%${byte.toString(16).padStart(2, '0')}`).join('')
}

test(`${QUERIES} downloads that a caller tries to hide are in the audit with their parsed parameters`, async (t) => {
  const random = seededRandom()
  t.diagnostic(`SEED=${random.seed}`)
  const hidden = Array.from({ length: QUERIES }, (_, at) => hiddenDownload(random, at))
  await using audit = await tempAudit()
  await using log = await audit.open()
  for (let from = 0; from < QUERIES; from += AT_ONCE) {
    await Promise.all(
      hidden.slice(from, from + AT_ONCE).map(async ({ query, kind, device }, index) => {
        const given = parseQueryString(query)
        const parsed = parseDownloadQuery(kind, given, { zone: 'UTC', nowNs: 0n, at: 'fleet' })
        const bounds = { devices: [], filters: [FORCED], spanMaxS: undefined, quotas: [] }
        const plan = planDownload(withinBounds(parsed, bounds), [device], 1)
        const facts = {
          actor: { ...NOBODY, user: 'mallory', requestId: String(from + index) },
          path: `/api/v1/pcap/${kind}`,
          query,
          plan: planFacts(plan.query, [device]),
          resumedId: undefined,
        }
        await new DownloadAudit(log, facts).begin()
      }),
    )
  }
  const byRequest = new Map((await audit.entries()).map((entry) => [entry.requestId, entry]))
  for (const [at, { device, beginNs, capture, filter, kind }] of hidden.entries()) {
    const entry = byRequest.get(String(at)) as AuditEntry
    assert.deepEqual(
      [
        entry.devices,
        entry.kind,
        entry.beginNs,
        entry.endNs,
        entry.capture,
        entry.filters,
        entry.forcedFilters,
      ],
      [[device], kind, String(beginNs), String(beginNs + 5n), capture, { FilterBPF: filter }, [FORCED]],
      String(at),
    )
    assert.equal(entry.event, 'download.begin')
  }
})
