// A body that is requested again continues the client's body exactly where that stopped.
import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { after, before, describe, test } from 'node:test'
import { framingFor } from '../../../../../src/gateway/device/body-framing.ts'
import { READ_BUFFERS } from '../../../../../src/gateway/device/read-size.ts'
import { chunked, pieces, RawDevice } from '../../../../support/devices/raw-device.ts'
import { eventually } from '../../../../support/eventually.ts'
import { httpGet } from '../../../../support/http-get.ts'
import { makePacket, makePcap } from '../../../../support/packets/packet-maker.ts'
import { type SeededRandom, seededRandom } from '../../../../support/seeded-random.ts'
import { type FrontRelay, type RelayFront, startRelayFront } from '../../../../support/servers/relay-front.ts'

const COMPLETE = '0\r\nCapfleet-Complete: 1\r\n\r\n'
const ROUNDS = 150

describe('a relay that continues after what was sent', () => {
  let device: RawDevice
  let front: RelayFront
  let begin = Promise.withResolvers<FrontRelay>()

  before(async () => {
    device = await RawDevice.start()
    front = await startRelayFront(device.url, { digest: true, onRelay: (relay) => begin.resolve(relay) })
  })
  after(async () => {
    await front[Symbol.asyncDispose]()
    await device[Symbol.asyncDispose]()
    await eventually(() => READ_BUFFERS.takenBytes === 0, { message: 'all buffers are back' })
  })

  interface Answer {
    readonly body: Buffer
    /** Sizes of its chunks; if undefined, the body ends with the connection. */
    readonly chunkBytes: readonly number[] | undefined
    /** The device sends only this much of the body, then hangs. */
    readonly part?: number
    /** Sizes of the device's writes. */
    readonly lengths: readonly number[]
    /** How many bytes fewer it skips than it says. */
    readonly tooMany?: number
    readonly cannotSkip?: boolean
    /** Closes the connection instead of hanging. */
    readonly dies?: boolean
  }

  /** The byte of the body at which the last request starts. */
  function askedAfter(): number {
    return Number(/[?&]After=(\d+)/.exec(device.requests.at(-1) ?? '')?.[1] ?? 0)
  }

  /** Everything that the device would write. */
  function wireOf({ body, chunkBytes, tooMany = 0, cannotSkip = false }: Answer): Buffer {
    const after = cannotSkip ? 0 : askedAfter()
    const said = after > 0 ? `Capfleet-After: ${after}\r\n` : ''
    const rest = body.subarray(after === 0 ? 0 : after - tooMany)
    if (chunkBytes === undefined) return Buffer.concat([Buffer.from(`HTTP/1.0 200 OK\r\n${said}\r\n`), rest])
    const head = `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: Capfleet-Complete\r\n${said}\r\n`
    return Buffer.concat([Buffer.from(head), chunked(rest, chunkBytes), Buffer.from(COMPLETE)])
  }

  /** Where the data written by the device ends in the body. */
  let dataEnd = 0

  /** Created when the request arrives. */
  function* writesOf(answer: Answer): Generator<Uint8Array> {
    const wire = wireOf(answer)
    const headBytes = wire.indexOf('\r\n\r\n') + 4
    // Enough of the body to open it, also in chunks of one byte.
    const leastBytes = Math.min(headBytes + 24 * 6, wire.length - 1)
    const { part = 1 } = answer
    const bytes =
      part === 1 ? wire : wire.subarray(0, leastBytes + Math.floor(part * (wire.length - leastBytes)))
    const data = bytes.subarray(headBytes)
    const isPlain = answer.chunkBytes === undefined
    dataEnd = askedAfter() + (isPlain ? data.length : lengthOf(framingFor('chunked').walk(data).data))
    yield* pieces(bytes, answer.lengths)
  }

  function lengthOf(all: readonly Buffer[]): number {
    return all.reduce((sum, { length }) => sum + length, 0)
  }

  function answerWith(answer: Answer): void {
    const isWhole = answer.part === undefined || answer.dies === true
    device.answer = { writes: writesOf(answer), end: isWhole ? 'close' : 'hang' }
  }

  /** No record begins with zeros: if a read ends with zeros, they wait for the next read. */
  const FIRST_NS = 1_700_000_001_000_000_000n

  function somePcap(random: SeededRandom): Buffer {
    const packets = Array.from({ length: random.integer(1, 200) }, (_, number) =>
      makePacket(FIRST_NS + BigInt(number), `packet ${number}`, random.integer(20, 1_400)),
    )
    return makePcap(packets)
  }

  /** Parks the relay whenever the device hangs, and lets the device continue with its next answer. */
  async function parkAndGoOn<Received>(
    [first, ...answers]: readonly Answer[],
    ask: () => Promise<Received>,
  ): Promise<Received> {
    begin = Promise.withResolvers()
    answerWith(first as Answer)
    const asked = ask()
    // The caller sees its failure.
    asked.catch(() => undefined)
    const { body, sentBytes, reopen } = await begin.promise
    for (const answer of answers) {
      await Promise.race([device.until(() => device.isHanging), asked])
      const reaches = () => sentBytes() >= dataEnd
      await eventually(reaches, { message: `${dataEnd} bytes were sent` })
      body.park()
      await device.until(() => device.connections === 0)
      device.isHanging = false
      answerWith(answer)
      body.unpark(reopen)
    }
    return asked
  }

  test('every byte arrives once, wherever the device and its chunks stopped', async (t) => {
    const random = seededRandom()
    t.diagnostic(`SEED=${random.seed}`)
    for (let round = 0; round < ROUNDS; round++) {
      const body = somePcap(random)
      const lengths = [random.integer(1, 40), random.integer(1, 3_000), random.integer(1, 90_000)]
      const sizes = () => Array.from({ length: 9 }, () => random.integer(1, random.pick([3, 900, 90_000])))
      const form = () => (random.integer(0, 2) === 0 ? undefined : sizes())
      const part = () => random.integer(0, 999) / 1_000
      const answers = [
        { body, lengths, chunkBytes: form(), part: part() },
        { body, lengths, chunkBytes: form(), part: part() },
        { body, lengths, chunkBytes: form() },
      ]
      const { body: received } = await parkAndGoOn(answers, () => httpGet(front.url))
      assert.ok(received.equals(body), `round ${round}`)
    }
  })

  test('the device sends again what is near the place only, however much was delivered', async () => {
    const packets = Array.from({ length: 4_000 }, (_, number) =>
      makePacket(BigInt(number), `packet ${number}`, 1_400),
    )
    const body = makePcap(packets)
    const lengths = [60_000]
    const answers = [0.3, 0.5, 0.8].map((part) => ({ body, lengths, chunkBytes: [50_000], part }))
    const all = [...answers, { body, lengths, chunkBytes: [50_000] }]
    const writtenBefore = device.writtenBytes
    const { body: received } = await parkAndGoOn(all, () => httpGet(front.url))
    assert.ok(received.equals(body))
    const again = device.writtenBytes - writtenBefore - body.length
    assert.ok(again < 3 * 1_300_000, `${again} bytes came twice`)
  })

  test('an HTTP/1.0 client gets the plain bytes', async () => {
    const body = somePcap(seededRandom(1))
    const answer = { body, chunkBytes: [900], lengths: [999] }
    const received = await parkAndGoOn([{ ...answer, part: 0.5 }, answer], async () => {
      const socket = connect(Number(new URL(front.url).port), '127.0.0.1')
      socket.write('GET / HTTP/1.0\r\n\r\n')
      return Buffer.concat((await socket.toArray()) as Buffer[])
    })
    assert.ok(received.subarray(received.indexOf('\r\n\r\n') + 4).equals(body))
  })

  describe('cuts the download when', () => {
    const packets = Array.from({ length: 50 }, (_, number) =>
      makePacket(BigInt(number), `packet ${number}`, 700),
    )
    const body = makePcap(packets)
    const first = { body, chunkBytes: [30_000], lengths: [1_000], part: 0.55 }
    const again = { body, chunkBytes: [500], lengths: [1_000] }

    for (const [what, answer, message] of [
      ['a packet before it has gone', { body: makePcap(packets.slice(1)) }, /have changed/],
      [
        'a byte before it is another one',
        { body: Buffer.from(body).fill(1, 15_000, 15_001) },
        /have changed/,
      ],
      ['the device has less than was sent', { body: makePcap(packets.slice(0, 10)) }, /have changed/],
      [
        'the device has less than its last chunk was to hold',
        { body: makePcap(packets.slice(0, 35)) },
        /have changed/,
      ],
      ['the device skips a byte less than it says', { tooMany: 1 }, /have changed|captured bytes/],
      ['the device begins with the first byte again', { cannotSkip: true }, /cannot start inside a download/],
      [
        'it must go on but the device breaks off',
        { part: 0.2, dies: true },
        /closed the connection before the end/,
      ],
    ] as const) {
      test(`${what}`, async () => {
        await assert.rejects(parkAndGoOn([first, { ...again, ...answer }], () => httpGet(front.url)))
        assert.match(String(front.ends.at(-1)), message)
      })
    }
  })
})
