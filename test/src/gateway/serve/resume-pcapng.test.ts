// Resume= of downloads in pcapng: the client's part and what it gets then are together the whole file.
import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { describe, test } from 'node:test'
import {
  countOption,
  IN_NANOSECONDS,
  interfaceDescription,
  interfaceStatistics,
  PcapngOption,
  sectionHeader,
  textOption,
} from '../../../../src/shared/pcap/pcapng-blocks.ts'
import { PCAPNG_END, PcapngEnd } from '../../../../src/shared/pcap/pcapng-end.ts'
import { FLEET_RANGE } from '../../../support/devices/fake-fleet.ts'
import { eventually } from '../../../support/eventually.ts'
import { httpGet, httpOpen } from '../../../support/http-get.ts'
import { makePacket } from '../../../support/packets/packet-maker.ts'
import { makePcapng } from '../../../support/packets/pcapng-maker.ts'
import { pcapngBlocks, readPcapng } from '../../../support/packets/pcapng-reader.ts'
import { GATEWAY_AUTHORIZATION, GatewayProcess } from '../../../support/processes/gateway-process.ts'
import { gatewayWorld } from '../../../support/processes/gateway-world.ts'
import { seededRandom } from '../../../support/seeded-random.ts'
import { tempFolder } from '../../../support/temp-folder.ts'

const RANDOM = seededRandom()
/** At night every place of relays and of merges; else each place of one of them. */
const IS_LONG = process.env.CAPFLEET_LONG === '1'
/** So that there are several positions, also before the second port is described. */
const PACKETS = 3_000
const SECOND_PORT_FROM = 2_000
const START_NS = 1_790_000_000_000_000_000n
const PATH = '/api/v1/pcap/timerange'
const QUERY = `${FLEET_RANGE}&Format=pcapng`
const RELAY = `/devices/d0${PATH}?${QUERY}`
const MERGE = `${PATH}?${QUERY}&Device=d0,d1`
const MARK_BYTES = 8
/** A device states that its packets are in order. */
const ORDERED = { 'Capfleet-Order': 'time' }

const comment = (text: string) => textOption(PcapngOption.comment, text)

/** What an appliance with two ports sends, the second of which begins late. */
function deviceFile(name: string, seed = name): Buffer {
  const random = seededRandom()
  const records = Array.from({ length: PACKETS }, (_, index) => ({
    ...makePacket(START_NS + BigInt(index) * 1_000_000n, `${seed} ${index}`, random.integer(300, 1_100)),
    port: index < SECOND_PORT_FROM ? 0 : index % 2,
  }))
  const described = (port: number) =>
    interfaceDescription({ linkType: 1, snaplen: 262_144 }, [
      textOption(PcapngOption.interfaceName, `${name}:cap${port}`),
      IN_NANOSECONDS,
    ])
  const blocksOf = (some: typeof records) => makePcapng(0, some).subarray(makePcapng(0, []).length)
  const statistics = (interfaceNumber: number, ...comments: string[]) =>
    interfaceStatistics({ interfaceNumber, atNs: START_NS }, [
      ...comments.map(comment),
      countOption(PcapngOption.statisticsDelivered, BigInt(PACKETS / 2)),
    ])
  return Buffer.concat([
    sectionHeader([comment(`capfleet timerange of ${name}`)]),
    described(0),
    blocksOf(records.slice(0, SECOND_PORT_FROM)),
    described(1),
    blocksOf(records.slice(SECOND_PORT_FROM)),
    statistics(0),
    statistics(1, `${PCAPNG_END}${PACKETS} packets, complete`, 'capfleet drops: none'),
  ])
}

const FILES = [deviceFile('d0'), deviceFile('d1')] as const

/** Places between and inside blocks of each kind. */
function placesIn(file: Buffer): readonly number[] {
  const blocks = pcapngBlocks(file)
  const begins = [0, ...blocks.map(({ end }) => end)]
  const ofType = (type: number) =>
    blocks.flatMap((block, index) => (block.type === type ? [begins[index] ?? 0] : []))
  const packets = ofType(6)
  const some = [packets[0], packets[1], packets[1_500], packets.at(-1)].map((at) => at ?? 0)
  const edges = [...ofType(0x0a0d0d0a), ...ofType(1), ...ofType(5), ...some]
  const inside = edges.flatMap((at) => [at, at + 5, at + 21])
  const more = Array.from({ length: 3 }, () => RANDOM.integer(0, file.length))
  return [...inside, ...more, file.length - 1].filter((at) => at > 0 && at < file.length)
}

function isWhole(file: Buffer): boolean {
  const end = new PcapngEnd('it')
  end.feed(file)
  return end.comments !== undefined
}

/** The packets with the names of their interfaces. */
function packetLines(file: Buffer): readonly string[] {
  const { packets, interfaces } = readPcapng(file)
  return packets.map(({ port, ns, captured }) => `${interfaces[port]?.name} ${ns} ${hash('md5', captured)}`)
}

function wholeBlocks(bytes: Buffer): Buffer {
  let end = 0
  try {
    pcapngBlocks(bytes)
    return bytes
  } catch (error) {
    end = Number(/no whole block at (\d+)/.exec(String(error))?.[1])
  }
  return bytes.subarray(0, end)
}

describe(`resume of pcapng (SEED=${RANDOM.seed})`, () => {
  const world = gatewayWorld(10, { downloads: { retryPauseMs: 10 } })
  const get = (path: string) => httpGet(world.gateway.url + path, { headers: world.gateway.as.user })

  function serve(dieAfterBytes?: number): void {
    for (const [index, body] of FILES.entries()) {
      const device = world.fleet[index]
      const dies = index === 0 && dieAfterBytes !== undefined ? { dieAfterBytes } : {}
      if (device !== undefined) device.behaviour = { body, headers: ORDERED, ...dies }
    }
  }

  async function whole(path: string): Promise<Buffer> {
    serve()
    const answer = await get(path)
    assert.equal(answer.status, 200, answer.body.subarray(0, 300).toString())
    return answer.body
  }

  /** Reads until the answer breaks off, or leaves after this many bytes. */
  async function getCut(path: string, leaveAfterBytes = Infinity) {
    using answer = await httpOpen(world.gateway.url + path, { headers: world.gateway.as.user })
    assert.equal(answer.response.statusCode, 200)
    const chunks: Buffer[] = []
    let bytes = 0
    try {
      for await (const chunk of answer.response) {
        chunks.push(chunk)
        bytes += chunk.length
        if (bytes >= leaveAfterBytes) break
      }
    } catch {}
    const id = String(answer.response.headers['capfleet-request-id'])
    return { id, bytes: Buffer.concat(chunks) }
  }

  const receiptOf = async (id: string) => (await get(`/v1/requests/${id}`)).json()

  /** How much of a cut download was sent, without the bytes that mark the cut. */
  async function sentBytes(id: string): Promise<number> {
    await eventually(async () => (await receiptOf(id)).status === 'failed', { message: 'it is cut' })
    return Number((await receiptOf(id)).bytes)
  }

  for (const [nth, [what, path]] of (
    [
      ['a relay', RELAY],
      ['a merge', MERGE],
    ] as const
  ).entries()) {
    const isMine = (_: number, index: number) => IS_LONG || index % 2 === nth
    test(`any size of the file of ${what}, continued by Offset, makes the same file`, async () => {
      const expected = await whole(path)
      assert.ok(isWhole(expected))
      const { id } = await getCut(path)
      for (const size of [0, ...placesIn(expected).filter(isMine), expected.length]) {
        const rest = await get(`${path}&Resume=${id}&Offset=${size}`)
        assert.equal(rest.status, 200, rest.body.subarray(0, 300).toString())
        assert.ok(Buffer.concat([expected.subarray(0, size), rest.body]).equals(expected), `size ${size}`)
      }
    })

    test(`${what} that breaks off continues in both forms, wherever it was`, async () => {
      const expected = await whole(path)
      const lines = packetLines(expected)
      for (const dieAfterBytes of placesIn(FILES[0])
        .filter((at) => at > 60)
        .filter(isMine)) {
        serve(dieAfterBytes)
        const cut = await getCut(path)
        const sent = await sentBytes(cut.id)
        assert.ok([sent, sent + MARK_BYTES].includes(cut.bytes.length), `${sent} of ${cut.bytes.length}`)
        assert.throws(() => readPcapng(cut.bytes), /no whole block/)
        const have = cut.bytes.subarray(0, sent)
        assert.ok(have.equals(expected.subarray(0, sent)))
        serve()
        const rest = await get(`${path}&Resume=${cut.id}&Offset=${sent}`)
        assert.ok(Buffer.concat([have, rest.body]).equals(expected), `after ${sent} bytes`)
        const own = await get(`${path}&Resume=${cut.id}`)
        assert.ok(isWhole(own.body), `after ${sent} bytes`)
        const before = sent === 0 ? [] : packetLines(wholeBlocks(have))
        assert.deepEqual([...before, ...packetLines(own.body)], lines, `after ${sent} bytes`)
      }
    })

    test(`a continuation of ${what} that is cut can be continued itself, in both forms`, async () => {
      const expected = await whole(path)
      const lines = packetLines(expected)
      serve(FILES[0].length / 3)
      const first = await getCut(path)
      const firstSent = await sentBytes(first.id)
      serve(Math.round(FILES[0].length * 0.9))
      const second = await getCut(`${path}&Resume=${first.id}`)
      const secondSent = await sentBytes(second.id)
      const third = await getCut(`${path}&Resume=${first.id}&Offset=${firstSent}`)
      const thirdSent = await sentBytes(third.id)
      serve()
      const own = await get(`${path}&Resume=${second.id}`)
      const parts = [first.bytes.subarray(0, firstSent), second.bytes.subarray(0, secondSent), own.body]
      assert.deepEqual(
        parts.flatMap((part) => packetLines(wholeBlocks(part))),
        lines,
      )
      const grown = await get(`${path}&Resume=${second.id}&Offset=${secondSent}`)
      const secondFile = Buffer.concat([second.bytes.subarray(0, secondSent), grown.body])
      assert.ok(isWhole(secondFile))
      assert.deepEqual(
        packetLines(secondFile),
        lines.slice(packetLines(wholeBlocks(parts[0] as Buffer)).length),
      )
      const have = Buffer.concat([first.bytes.subarray(0, firstSent), third.bytes.subarray(0, thirdSent)])
      const rest = await get(`${path}&Resume=${third.id}&Offset=${have.length}`)
      assert.ok(Buffer.concat([have, rest.body]).equals(expected))
      const tooFew = await get(`${path}&Resume=${second.id}&Offset=3`)
      assert.deepEqual([tooFew.status, tooFew.json().param], [400, 'Offset'])
      assert.match(String(tooFew.json().detail), new RegExp(`Resume=${first.id}`))
    })

    test(`${what} that its client left continues at what it has`, async () => {
      const expected = await whole(path)
      for (const leaveAfterBytes of [1, 30_000, 1_500_000]) {
        serve()
        const cut = await getCut(path, leaveAfterBytes)
        const rest = await get(`${path}&Resume=${cut.id}&Offset=${cut.bytes.length}`)
        assert.ok(Buffer.concat([cut.bytes, rest.body]).equals(expected))
      }
    })

    test(`${what} whose packets have changed is refused: 410 before the first byte`, async () => {
      await whole(path)
      const { id } = await getCut(path)
      const [first] = world.fleet
      assert.ok(first)
      first.behaviour = { ...first.behaviour, body: deviceFile('d0', 'other') }
      for (const more of [`&Offset=${1_500_000}`, `&Offset=${FILES[0].length - 10}`]) {
        const rest = await get(`${path}&Resume=${id}${more}`)
        assert.deepEqual([rest.status, rest.json().code], [410, 'aged-out'], more)
      }
    })
  }

  test('of a relay only what is missing is asked for', async () => {
    const expected = await whole(RELAY)
    const { id } = await getCut(RELAY)
    const [device] = world.fleet
    assert.ok(device)
    device.requests.length = 0
    const size = expected.length - 100_000
    const rest = await get(`${RELAY}&Resume=${id}&Offset=${size}`)
    assert.ok(rest.body.equals(expected.subarray(size)))
    const after = device.requests.map(({ url }) =>
      Number(new URLSearchParams(url.split('?')[1]).get('After')),
    )
    assert.ok(
      after.some((bytes) => bytes > size - 1_500_000 && bytes <= size),
      String(after),
    )
  })
})

describe(`resume of pcapng after kill -9 of the gateway (SEED=${RANDOM.seed})`, () => {
  const world = gatewayWorld(10)

  function serve(hangAfterBytes?: number): void {
    for (const device of world.fleet) {
      const hangs = hangAfterBytes === undefined ? {} : { hangAfterBytes }
      device.behaviour = { body: device.name === 'd1' ? FILES[1] : FILES[0], headers: ORDERED, ...hangs }
    }
  }

  // The streams of a gateway that died are taken until its lease ends, so each has devices of its own.
  const places = [300, 1_500_000, FILES[0].length - 20]
  for (const [what, path, some] of [
    ['a relay', RELAY, IS_LONG ? places : [300]],
    ['a merge', `${PATH}?${QUERY}&Device=d1,d2`, IS_LONG ? places : places.slice(1, 2)],
  ] as const)
    test(`${what} continues at another gateway`, async () => {
      for (const hangAfterBytes of some) {
        await using folder = await tempFolder()
        await using killed = await GatewayProcess.start({
          folder: folder.path,
          name: 'killed',
          environment: {},
          config: { redis: { url: world.redis.url }, devices: world.fleet.map(({ config }) => config) },
        })
        serve(hangAfterBytes)
        const headers = { authorization: GATEWAY_AUTHORIZATION }
        using answer = await httpOpen(killed.url + path, { headers })
        const id = String(answer.response.headers['capfleet-request-id'])
        const chunks: Buffer[] = []
        answer.response.on('data', (chunk: Buffer) => chunks.push(chunk))
        const isEnded = new Promise((resolve) => answer.response.once('close', resolve))
        answer.response.on('error', () => undefined)
        const known = async () => {
          const receipt = await httpGet(`${world.gateway.url}/v1/requests/${id}`, {
            headers: world.gateway.as.user,
          })
          return Number(receipt.json().bytes) > 0
        }
        await eventually(known, { message: 'the receipt is known to all gateways' })
        await killed.signal('SIGKILL')
        await isEnded
        const have = Buffer.concat(chunks)
        assert.ok(have.length > 0)
        serve()
        const get = (more: string) =>
          httpGet(`${world.gateway.url}${path}${more}`, { headers: world.gateway.as.user })
        const again = await get('')
        assert.equal(again.status, 200, again.body.subarray(0, 300).toString())
        const expected = again.body
        assert.ok(isWhole(expected) && have.length < expected.length)
        const rest = await get(`&Resume=${id}&Offset=${have.length}`)
        assert.ok(Buffer.concat([have, rest.body]).equals(expected), rest.body.subarray(0, 300).toString())
        const alone = await get(`&Resume=${id}`)
        assert.deepEqual([alone.status, alone.json().param], [400, 'Resume'])
      }
    })
})
