// Lists of addresses through a gateway: by GET and by POST, of one device and merged, under the bounds of a caller, in
// receipts, the audit and exports, and from the command line.
import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { type HttpAnswer, httpGet } from '../../support/http-get.ts'
import { packetAddresses } from '../../support/packets/packet-addresses.ts'
import { makePcap } from '../../support/packets/packet-maker.ts'
import { type PcapRecord, readPcap, recordLines } from '../../support/packets/pcap-records.ts'
import { gatewayEnvironment, type TempClient, tempClient } from '../../support/processes/client-process.ts'
import {
  SMALL_FLEET_START_NS,
  type SmallFleet,
  startSmallFleet,
} from '../../support/processes/small-fleet.ts'
import { USER_PASSWORD } from '../../support/suite-secrets.ts'

const PACKETS = 1_500
const STEP_NS = 1_000_000n
const END_NS = SMALL_FLEET_START_NS + BigInt(PACKETS) * STEP_NS
const RANGE = { TSBegin: String(SMALL_FLEET_START_NS), TSEnd: String(END_NS), TSUnit: 'nanos' }
const PATH = '/api/v1/pcap/timerange'
const FORM = { 'content-type': 'application/x-www-form-urlencoded' }

/** UDP and TCP in turns, to 1,500 addresses. */
function captureOf(): Buffer {
  const packets = Array.from({ length: PACKETS }, (_, index): PcapRecord => {
    const captured = Buffer.alloc(64)
    captured.writeUInt16BE(0x0800, 12)
    captured[14] = 0x45
    captured[23] = index % 2 === 0 ? 17 : 6
    captured.writeUInt32BE(0xc0000201, 26)
    captured.writeUInt32BE(0x0a000000 + index, 30)
    return { ns: SMALL_FLEET_START_NS + BigInt(index) * STEP_NS, originalLength: captured.length, captured }
  })
  return makePcap(packets)
}

/** Four of them occur in packets; too long for any address. */
const FEW = ['10.0.0.5', '10.0.1.2', '10.0.2.8', '10.0.5.1']
const MANY = [
  ...Array.from(
    { length: 9_900 },
    (_, index) => `2001:db8:${(index >> 8).toString(16)}::${index.toString(16)}`,
  ),
  ...FEW,
]

describe('a list of addresses', () => {
  let fleet: SmallFleet
  let client: TempClient
  before(async () => {
    fleet = await startSmallFleet([{ name: 'udp', role: 'user', filter: 'udp' }], captureOf)
    client = await tempClient()
  })
  after(async () => {
    await client?.[Symbol.asyncDispose]()
    await fleet?.[Symbol.asyncDispose]()
  })

  const post = (path: string, pairs: Readonly<Record<string, string>>, user?: string): Promise<HttpAnswer> =>
    httpGet(`${fleet.gateway.url}${path}`, {
      method: 'POST',
      headers: { ...FORM, ...(user === undefined ? fleet.gateway.as.user : fleet.gateway.basic(user)) },
      body: new URLSearchParams(pairs).toString(),
    })
  const get = (path: string): Promise<HttpAnswer> =>
    httpGet(`${fleet.gateway.url}${path}`, { headers: fleet.gateway.as.user })

  const all = async (device: string): Promise<readonly PcapRecord[]> =>
    readPcap((await get(`/devices/${device}${PATH}?${new URLSearchParams(RANGE)}`)).body).records
  const selected = (records: readonly PcapRecord[]): readonly PcapRecord[] =>
    records.filter(({ captured }) => packetAddresses(1, captured).some((address) => FEW.includes(address)))

  test('of 9,904 entries selects the same by POST as its few by GET, of one device and merged', async () => {
    const one = await post(`/devices/east${PATH}`, { ...RANGE, FilterAddresses: MANY.join('\n') })
    assert.equal(one.status, 200, one.body.toString('utf8', 0, 300))
    const expected = selected(await all('east'))
    // The device has two captures of them.
    assert.equal(expected.length, 2 * FEW.length)
    assert.deepEqual(recordLines(readPcap(one.body).records), recordLines(expected))
    const short = new URLSearchParams({ ...RANGE, FilterAddresses: FEW.join(',') })
    const byGet = await get(`/devices/east${PATH}?${short}`)
    assert.deepEqual(byGet.body, one.body)
    const merged = await post(PATH, { ...RANGE, Device: 'east,west', FilterAddresses: MANY.join(',') })
    assert.equal(merged.status, 200)
    assert.deepEqual(merged.body, (await get(`${PATH}?${short}&Device=east,west`)).body)
  })

  test('is refused where it would be ignored in part or as a whole', async () => {
    const range = new URLSearchParams(RANGE)
    const list = `FilterAddresses=${FEW.join(',')}`
    const form = (body: string, type = FORM['content-type']) => ({ method: 'POST', body, type })
    const refused: readonly (readonly [
      what: RegExp,
      path: string,
      how?: { readonly method: string; readonly body: string; readonly type: string },
    ])[] = [
      [/has a body/, `${PATH}?${range}`, { ...form(list), method: 'GET' }],
      [/not by "&"/, `${PATH}?${range}&FilterAddresses=${FEW.join('&')}`],
      [/not by "&"/, `${PATH}?${range}&FilterAddresses=10.0.0.5&2001:db8::/32`],
      [/Addresses is not a parameter/, `${PATH}?${range}`, form(`Addresses=${FEW[0]}`)],
      [/10\.0\.0\.510\.0\.1\.2 is not a parameter/, `${PATH}?${range}`, form('10.0.0.510.0.1.2')],
      [/is not the name of a parameter/, PATH, form('x'.repeat(100_000))],
      [/byte at 0 that must be percent-encoded/, PATH, form('\0'.repeat(100_000))],
      [/byte at 19 that must/, PATH, form('FilterAddresses=# Zürich')],
      [/in UTF-8/, PATH, form(list, `${FORM['content-type']}; charset=utf-16`)],
    ]
    const callers = [
      { url: fleet.gateway.url, user: `user:${USER_PASSWORD}` },
      ...fleet.appliances.map(({ url, credentials }) => ({ url, user: credentials('full') })),
    ]
    for (const { url, user } of callers) {
      for (const [what, path, how] of refused) {
        const { method = 'GET', body, type = '' } = how ?? {}
        const headers = { 'content-type': type, 'content-length': String(Buffer.byteLength(body ?? '')) }
        const answer = await httpGet(url + path, {
          user,
          method,
          ...(body === undefined ? {} : { headers, body }),
        })
        assert.equal(answer.status, 400, `${url}${path} ${what}`)
        assert.match(String(answer.json().detail), what)
        assert.ok(answer.body.length < 1_000)
      }
    }
  })

  test('is not added to a link, which is for its own query only', async () => {
    const ordered = await httpGet(`${fleet.gateway.url}/v1/tickets?${new URLSearchParams({ For: PATH })}`, {
      method: 'POST',
      headers: fleet.gateway.as.user,
    })
    const link = new URL(String(ordered.json().url), fleet.gateway.url)
    const body = new URLSearchParams(RANGE).toString()
    const changed = await httpGet(link.href, { method: 'POST', headers: FORM, body })
    assert.equal(changed.status, 400)
    assert.match(String(changed.json().detail), /Ticket is for a GET/)
    assert.notEqual((await httpGet(link.href)).status, 403, 'it is not used up')
  })

  test('stays within the filter of the bounds', async () => {
    const { status, body } = await post(
      `/devices/east${PATH}`,
      { ...RANGE, FilterAddresses: MANY.join(' ') },
      'udp',
    )
    assert.equal(status, 200)
    const expected = selected(await all('east'))
    const udp = expected.filter(({ captured }) => captured[23] === 17)
    assert.ok(udp.length > 0 && udp.length < expected.length)
    assert.deepEqual(recordLines(readPcap(body).records), recordLines(udp))
  })

  test('is described in the receipt, whose query gives nobody all packets, and is repeated to resume', async () => {
    const asked = { ...RANGE, FilterAddresses: MANY.join('\n') }
    const whole = await post(`/devices/east${PATH}`, asked)
    const id = String(whole.headers['capfleet-request-id'])
    const receipt = (await get(`/v1/requests/${id}`)).json()
    assert.match(String(receipt.query), /&FilterAddresses=\(9904%20entries%2C%20SHA-256%20[0-9a-f]{64}\)/)
    assert.equal((await get(`/devices/east${PATH}?${receipt.query}`)).status, 400)
    const resume = { Resume: id, Offset: '24' }
    const alone = await post(`/devices/east${PATH}`, resume)
    assert.equal(alone.status, 400)
    assert.match(String(alone.json().detail), /Resume needs the same FilterAddresses again/)
    const rest = await post(`/devices/east${PATH}`, { ...asked, ...resume })
    assert.equal(rest.status, 200, rest.body.toString('utf8', 0, 300))
    assert.deepEqual(rest.body, whole.body.subarray(24))
  })

  test('is in the audit, cut', async () => {
    const answer = await httpGet(`${fleet.gateway.url}/v1/audit?Event=download.begin&Limit=1`, {
      headers: fleet.gateway.as.admin,
    })
    const { entries } = answer.json() as { entries: { filters: Record<string, string> }[] }
    const text = entries[0]?.filters.FilterAddresses ?? ''
    assert.match(text, /^9904 entries, SHA-256 [0-9a-f]{64}: 10\.0\.0\.5,10\.0\.1\.2,/)
    assert.ok(text.length < 4_096)
  })

  test('is read from a file by the command line', async () => {
    const file = join(client.folder, 'hosts.txt')
    await writeFile(file, `# hosts that were seen\n${MANY.join('\n')}\n`)
    const environment = gatewayEnvironment(fleet.gateway.url, 'user', USER_PASSWORD)
    const range = ['--begin', RANGE.TSBegin, '--end', RANGE.TSEnd, '-d', 'east']
    const out = join(client.folder, 'hosts.pcap')
    const done = await client.run(['get', ...range, '--addresses', file, '-o', out], { environment })
    assert.equal(done.status, 0, done.stderr)
    const expected = await post(`/devices/east${PATH}`, { ...RANGE, FilterAddresses: FEW.join(',') })
    assert.deepEqual(await readFile(out), expected.body)
    await writeFile(file, '# nobody\n')
    const empty = await client.run(['get', ...range, '--addresses', file, '-o', out, '--force'], {
      environment,
    })
    assert.notEqual(empty.status, 0)
    assert.match(empty.stderr, /--addresses: .*hosts\.txt has no address/)
  })
})
