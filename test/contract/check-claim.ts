/** Walks the checks of a claim on one route: sends the request, and compares the answer with the row's expectations. */
import assert from 'node:assert/strict'
import { execFile, execFileSync } from 'node:child_process'
import { inspect } from 'node:util'
import { gunzipSync } from 'node:zlib'
import { ERROR_KINDS, type ErrorCode } from '../../src/shared/base/error.ts'
import { readPcap, recordLines } from '../support/packets/pcap-records.ts'
import { type ReferenceQuery, referenceDownload } from '../support/reference/reference-download.ts'
import {
  ABSENT,
  type AnswerCheck,
  BOOLEAN,
  type Check,
  type Claim,
  INTEGER,
  LIST,
  type Members,
  NUMBER,
  OBJECT,
  type RouteName,
  STRING,
  type StoredPackets,
} from './claim.ts'
import { CAPTURES } from './contract-captures.ts'
import type { ContractStand } from './contract-stand.ts'
import { Place, type Seen } from './place.ts'

/** The checks of the claim that apply to this route. */
export function checksOn(claim: Claim, route: RouteName): readonly Check[] {
  return claim.checks.filter((check) => check.out?.[route] === undefined)
}

export async function walkClaim(claim: Claim, route: RouteName, stand: ContractStand): Promise<void> {
  for (const check of checksOn(claim, route)) {
    const at = new Place(stand, route, check.device ?? 'east')
    if ('act' in check) await check.act(at)
    else await walkAnswer(check, at)
  }
}

async function walkAnswer(check: AnswerCheck, at: Place): Promise<void> {
  const target = typeof check.get === 'string' ? check.get : await check.get(at)
  const { as, method, headers } = check
  const seen = await at.ask(target, { as, method, headers })
  const where = `${method ?? 'GET'} ${at.urlOf(target)}\n${seen.status} ${seen.text.slice(0, 600)}`
  const [code, param] = check.problem ?? []
  const kind = code === undefined ? undefined : ERROR_KINDS[code as ErrorCode]
  assert.equal(seen.status, check.status ?? kind?.status ?? 200, where)
  if (code !== undefined) checkProblem(seen, [code, param], where)
  for (const [name, wanted] of Object.entries(check.head ?? {})) {
    const value = seen.headers[name.toLowerCase()]
    if (wanted instanceof RegExp) assert.match(String(value), wanted, `${name}: ${where}`)
    else assert.equal(value, wanted, `${name}: ${where}`)
  }
  if (check.text !== undefined) assert.match(seen.text, check.text, where)
  if (check.members !== undefined) checkMembers(seen.json(), check.members, where)
  if (check.pcap !== undefined) await checkPcap(seen, check, check.pcap, where)
  await check.see?.(seen, at)
}

function checkProblem(seen: Seen, [code, param]: readonly [string, string | undefined], where: string): void {
  assert.equal(seen.headers['content-type'], 'application/problem+json', where)
  const body = seen.json()
  assert.equal(body.code, code, where)
  if (param !== undefined) assert.equal(body.param, param, where)
  for (const member of ['type', 'title', 'detail', 'requestId'])
    assert.equal(typeof body[member], 'string', where)
}

const TYPES: ReadonlyMap<unknown, (value: unknown) => boolean> = new Map([
  [STRING, (value: unknown) => typeof value === 'string'],
  [INTEGER, (value: unknown) => Number.isInteger(value)],
  [NUMBER, (value: unknown) => typeof value === 'number'],
  [BOOLEAN, (value: unknown) => typeof value === 'boolean'],
  [LIST, (value: unknown) => Array.isArray(value)],
  [OBJECT, (value: unknown) => typeof value === 'object' && value !== null && !Array.isArray(value)],
  [ABSENT, (value: unknown) => value === undefined],
])

export function checkMembers(body: unknown, members: Members, where = ''): void {
  for (const [path, wanted] of Object.entries(members)) {
    const value = path
      .split('.')
      .reduce<unknown>((inner, name) => (inner as Record<string, unknown> | undefined)?.[name], body)
    const isOfType = TYPES.get(wanted)
    const shown = `${path} is ${JSON.stringify(value)}: ${where}`
    if (isOfType !== undefined) assert.ok(isOfType(value), `${String(wanted)} is wanted, ${shown}`)
    else if (wanted instanceof RegExp) {
      assert.equal(typeof value, 'string', shown)
      assert.match(String(value), wanted, shown)
    } else assert.deepEqual(value, wanted, shown)
  }
}

const SNAPLEN = 262_144
const EVERYTHING: ReferenceQuery = {
  beginNs: 0n,
  endNs: 2n ** 32n * 1_000_000_000n,
  conditions: [],
  udpPort: undefined,
  isDecap: false,
  pattern: undefined,
  mode: 'nic',
  tsMaxNs: undefined,
  sliceBytes: undefined,
  maxPackets: undefined,
  maxBytes: undefined,
  isMicroseconds: false,
}

interface Expected {
  readonly pcap: Buffer
  readonly packets: number
}

/** By query: many rows have the same expectations, on three routes each. */
const expectations = new Map<string, Expected>()

async function expected({ of, query }: StoredPackets): Promise<Expected> {
  const key = inspect([of, query], { depth: 9 })
  const known = expectations.get(key)
  if (known !== undefined) return known
  const streams = of.flatMap((name) => CAPTURES[name].streams)
  const { pcap } = referenceDownload(streams, { ...EVERYTHING, ...query }, SNAPLEN)
  const { length } = readPcap(pcap).records
  // A row that expects nothing, or all packets although it filters, would prove nothing.
  assert.ok(length > 0, `no packet is expected of ${key}`)
  const isFiltered = Object.keys(query).some((name) => !['mode', 'isMicroseconds', 'isDecap'].includes(name))
  if (isFiltered && query.sliceBytes !== 12_288)
    assert.notDeepEqual(pcap, (await expected({ of, query: {} })).pcap, `nothing is left out by ${key}`)
  assert.equal(await countByTcpdump(pcap), length, key)
  const found = { pcap, packets: length }
  expectations.set(key, found)
  return found
}

async function checkPcap(
  seen: Seen,
  { packed }: AnswerCheck,
  wanted: StoredPackets,
  where: string,
): Promise<void> {
  const body = packed === undefined ? seen.body : unpack(seen.body, packed)
  const { pcap } = await expected(wanted)
  if (body.equals(pcap)) return
  assert.deepEqual(recordLines(readPcap(body).records), recordLines(readPcap(pcap).records), where)
  assert.deepEqual(body.subarray(0, 24), pcap.subarray(0, 24), where)
}

export function unpack(body: Buffer, packed: 'gzip' | 'zstd'): Buffer {
  // Node's one-shot zstd decoder stops after the first of several frames.
  if (packed === 'zstd') return execFileSync('zstd', ['-dcq'], { input: body, maxBuffer: 1 << 28 })
  return gunzipSync(body)
}

/** Counts the packets that tcpdump reads, all or those that match; fails if tcpdump finds the file broken. */
export async function countByTcpdump(pcap: Buffer, filter = ''): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  const child = execFile(
    'tcpdump',
    ['-nr', '-', '--count', ...(filter === '' ? [] : [filter])],
    (error, out) => (error === null ? resolve(out) : reject(error)),
  )
  child.stdin?.on('error', () => undefined)
  child.stdin?.end(pcap)
  return Number(/^(\d+) packets?/m.exec(await promise)?.[1])
}
