/** /api/v1/seen over real captures: nothing that is there is missing, and verified counts are those of the packets. */
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { SEEN_LINES } from '../../../src/shared/contract/seen-answers.ts'
import { STORABLE_FILES } from '../../support/packets/capture-files.ts'
import { packetAddresses } from '../../support/packets/packet-addresses.ts'
import { makePcap } from '../../support/packets/packet-maker.ts'
import { readPcap } from '../../support/packets/pcap-records.ts'
import { startTempAppliance, type TempAppliance } from '../../support/processes/temp-appliance.ts'

const LINK_TYPES: ReadonlySet<number> = new Set([1, 12, 101, 113, 228, 229, 276])
const FORM = { 'content-type': 'application/x-www-form-urlencoded' }
const ALL = { TSBegin: '0', TSEnd: '4294967296', TSUnit: 'sec' }
let appliance: TempAppliance

/** What the packets themselves say about an address. */
interface Truth {
  packets: bigint
  bytes: bigint
  firstNs: bigint
  lastNs: bigint
}
const truth = new Map<string, Truth>()
const otherLinkTypes = new Set<number>()

/** A line has the members of one form, and no others. */
const FORMS = Object.values(SEEN_LINES).map((form) => form.strict())

interface Span {
  readonly fromNs: string
  readonly toNs: string
}
interface SeenAddress {
  readonly address: string
  readonly packets?: string
  readonly bytes?: string
  readonly firstNs?: string
  readonly lastNs?: string
  readonly spans: readonly Span[]
}
interface Seen {
  readonly addresses: ReadonlyMap<string, SeenAddress>
  readonly lines: readonly Record<string, unknown>[]
  readonly end: Record<string, unknown>
}

async function seen(
  pairs: Readonly<Record<string, string>>,
  headers: Readonly<Record<string, string>> = {},
): Promise<Seen> {
  const body = new URLSearchParams({ ...ALL, ...pairs }).toString()
  const answer = await appliance.get('/api/v1/seen', {
    method: 'POST',
    headers: { ...FORM, ...headers },
    body,
  })
  const text = answer.body.toString()
  assert.equal(answer.status, 200, text.slice(0, 500))
  const lines = text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>)
  for (const line of lines)
    assert.ok(
      FORMS.some((form) => form.safeParse(line).success),
      JSON.stringify(line),
    )
  const end = lines.at(-1) ?? {}
  assert.equal(end.end, true, text.slice(-500))
  const found = lines.filter((line) => 'address' in line) as unknown as SeenAddress[]
  return { addresses: new Map(found.map((one) => [one.address, one])), lines, end }
}

function contains({ fromNs, toNs }: Span, ns: bigint): boolean {
  return BigInt(fromNs) <= ns && ns < BigInt(toNs)
}

before(async () => {
  appliance = await startTempAppliance()
  await importMade()
  for (const [index, path] of STORABLE_FILES.entries()) {
    const StreamName = `file${index}`
    await appliance.importFiles(StreamName, path)
    const answer = await appliance.get(`/api/v1/pcap/single?StreamName=${StreamName}`)
    const { records, linkType } = readPcap(answer.body)
    if (!LINK_TYPES.has(linkType)) {
      otherLinkTypes.add(linkType)
      continue
    }
    for (const { captured, originalLength, ns } of records) {
      for (const address of new Set(packetAddresses(linkType, captured))) {
        const known = truth.get(address) ?? { packets: 0n, bytes: 0n, firstNs: ns, lastNs: ns }
        known.packets += 1n
        known.bytes += BigInt(originalLength)
        if (ns < known.firstNs) known.firstNs = ns
        if (ns > known.lastNs) known.lastNs = ns
        truth.set(address, known)
      }
    }
  }
  assert.ok(truth.size > 50, String(truth.size))
})
after(() => appliance[Symbol.asyncDispose]())

const everyAddress = (): string => ['# all of them', ...truth.keys()].join('\n')
/** When made packets were captured: Ethernet alone, because other link types have neither tables nor sieves. */
const MADE_S = '1893456000'

async function importMade(): Promise<void> {
  const packets = Array.from({ length: 2_000 }, (_, index) => {
    const captured = Buffer.alloc(64)
    captured.writeUInt16BE(0x0800, 12)
    captured[14] = 0x45
    captured.writeUInt32BE(0xc6336401, 26)
    captured.writeUInt32BE(0x0b000000 + index, 30)
    return { ns: BigInt(MADE_S) * 1_000_000_000n + BigInt(index), originalLength: 64, captured }
  })
  const path = join(appliance.folder, 'made.pcap')
  await writeFile(path, makePcap(packets))
  await appliance.importFiles('made', path)
}

/** Of no packet: documentation and benchmarking networks. */
const absent = Array.from({ length: 1_000 }, (_, index) => `198.18.${index >> 8}.${index & 255}`)

describe('an address is found where it is', () => {
  test('every address of every packet is in a span', async () => {
    const { addresses, end } = await seen({ Address: everyAddress() })
    for (const [address, { firstNs, lastNs }] of truth) {
      const spans = addresses.get(address)?.spans ?? []
      for (const ns of [firstNs, lastNs])
        assert.ok(
          spans.some((span) => contains(span, ns)),
          `${address} at ${ns}`,
        )
    }
    assert.equal(end.complete, true)
    assert.equal(end.addresses, truth.size)
    assert.deepEqual(
      end.otherLinkTypes,
      [...otherLinkTypes].toSorted((a, b) => a - b),
    )
  })

  test('verified, each has exactly its packets, and no time is left', async () => {
    const { addresses, end, lines } = await seen({ Address: everyAddress(), Verify: '1' })
    assert.equal(addresses.size, truth.size)
    for (const [address, { packets, bytes, firstNs, lastNs }] of truth)
      assert.deepEqual(addresses.get(address), {
        address,
        packets: String(packets),
        bytes: String(bytes),
        firstNs: String(firstNs),
        lastNs: String(lastNs),
        spans: [],
      })
    assert.equal(end.complete, true)
    assert.ok(lines.some((line) => 'checkedBytes' in line))
  })

  test('addresses that are nowhere are hardly ever reported, and never when verified', async () => {
    const { addresses } = await seen({ Address: absent.join(','), TSBegin: MADE_S, TSEnd: `${MADE_S}.5` })
    assert.ok(addresses.size <= absent.length / 50, String(addresses.size))
    const verified = await seen({ Address: absent.join(' '), Verify: '1' })
    assert.equal(verified.addresses.size, 0)
  })

  test('a network counts each packet of its addresses once', async () => {
    const [address = ''] = [...truth.keys()].filter((one) => one.includes('.'))
    const network = `${address.split('.').slice(0, 2).join('.')}.0.0/16`
    const { addresses } = await seen({ Address: `${address},${network}`, Verify: '1' })
    const [one, all] = [addresses.get(address), addresses.get(network)]
    assert.ok(BigInt(all?.packets ?? 0) >= BigInt(one?.packets ?? 1), network)
    assert.equal(one?.packets, String(truth.get(address)?.packets))
  })
})

describe('limits and filters', () => {
  test('what VerifyBytesMax leaves is named', async () => {
    const [[address, { packets }] = ['', { packets: 0n }]] = truth
    const { addresses, end } = await seen({ Address: everyAddress(), Verify: '1', VerifyBytesMax: '1' })
    const counted = [...addresses.values()].reduce((sum, one) => sum + BigInt(one.packets ?? 0), 0n)
    const all = [...truth.values()].reduce((sum, one) => sum + one.packets, 0n)
    const isWhole = counted === all
    assert.equal(end.complete, isWhole)
    if (!isWhole) assert.ok([...addresses.values()].some(({ spans }) => spans.length > 0))
    assert.ok(packets > 0n, address)
  })

  test('FilterBPF counts only what passes, and needs Verify', async () => {
    const { addresses, end } = await seen({ Address: everyAddress(), Verify: '1', FilterBPF: 'less 1' })
    assert.deepEqual([addresses.size, end.complete], [0, true])
    const body = new URLSearchParams({ ...ALL, Address: '10.1.2.3', FilterBPF: 'udp' }).toString()
    const refused = await appliance.get('/api/v1/seen', { method: 'POST', headers: FORM, body })
    assert.equal(refused.status, 400)
    assert.match(refused.body.toString(), /FilterBPF needs Verify=1/)
  })

  test('behind a forced filter there are only counts', async () => {
    const { lines, end } = await seen(
      { Address: everyAddress(), Verify: '1', FilterBPF: 'less 1' },
      { 'capfleet-forced-filter': 'true' },
    )
    assert.equal(lines.length, 1, 'neither progress nor spans')
    assert.deepEqual(end.otherLinkTypes, [], 'nor what else is stored')
    const body = new URLSearchParams({ ...ALL, Address: '10.1.2.3' }).toString()
    const headers = { ...FORM, 'capfleet-forced-filter': 'true' }
    const refused = await appliance.get('/api/v1/seen', { method: 'POST', headers, body })
    assert.match(refused.body.toString(), /Verify must be 1/)
  })

  test('a list may be the body itself, or be given in parts', async () => {
    const [one = '', other = ''] = truth.keys()
    const ask = async (query: string, body?: string): Promise<string> => {
      const headers = { 'content-type': 'text/plain; charset=utf-8' }
      const options = body === undefined ? {} : { method: 'POST', headers, body }
      const range = new URLSearchParams({ ...ALL, Verify: '1' }).toString()
      const answer = await appliance.get(`/api/v1/seen?${range}${query}`, options)
      assert.equal(answer.status, 200, answer.body.toString())
      return answer.body.toString()
    }
    const expected = (await seen({ Address: `${one},${other}`, Verify: '1' })).lines
      .map((line) => `${JSON.stringify(line)}\n`)
      .join('')
    assert.equal(await ask('', `# indicators, from München\r\n${one}\r\n${other} # seen\n`), expected)
    assert.equal(await ask(`&Address=${encodeURIComponent(one)}`, other), expected)
    assert.equal(
      await ask([one, other].map((address) => `&Address=${encodeURIComponent(address)}`).join('')),
      expected,
    )
    const path = `/api/v1/pcap/timerange?${new URLSearchParams(ALL).toString()}`
    const refused = await appliance.get(path, {
      method: 'POST',
      headers: { 'content-type': 'text/plain' },
      body: one,
    })
    assert.match(refused.body.toString(), /a body must be an uncompressed form/)
  })

  test('a list without an address, or with something else, is refused', async () => {
    for (const [Address, expected] of [
      ['# nothing', /Address has no address/],
      ['10.1.2', /is no IPv4 or IPv6 address/],
    ] as const) {
      const answer = await appliance.get(
        `/api/v1/seen?${new URLSearchParams({ ...ALL, Address }).toString()}`,
      )
      assert.equal(answer.status, 400)
      assert.match(answer.body.toString(), expected)
    }
  })
})
