// A body that is made again joins the one that the client has, wherever that one stopped.
import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { after, before, describe, test } from 'node:test'
import { framingFor } from '../../../src/device/body-framing.ts'
import { READ_BUFFERS } from '../../../src/device/read-size.ts'
import { chunked, pieces, RawDevice } from '../../support/devices/raw-device.ts'
import { eventually } from '../../support/eventually.ts'
import { httpGet } from '../../support/http-get.ts'
import { makePacket, makePcap } from '../../support/packets/packet-maker.ts'
import { type FrontRelay, type RelayFront, startRelayFront } from '../../support/relay-front.ts'
import { type SeededRandom, seededRandom } from '../../support/seeded-random.ts'

const HEADS = {
  chunked: 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: Capfleet-Complete\r\n\r\n',
  plain: 'HTTP/1.0 200 OK\r\n\r\n',
}
const COMPLETE = '0\r\nCapfleet-Complete: 1\r\n\r\n'
const ROUNDS = 150

describe('a relay that goes on behind what was sent', { timeout: 60_000 }, () => {
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
    await eventually(() => READ_BUFFERS.takenBytes === 0, { limitMs: 2_000, message: 'all buffers are back' })
  })

  /** The device's whole answer. */
  function answerOf(body: Buffer, random: SeededRandom): Buffer {
    const form = random.pick(['chunked', 'chunked', 'plain'] as const)
    if (form === 'plain') return Buffer.concat([Buffer.from(HEADS.plain), body])
    const sizes = Array.from({ length: 9 }, () => random.integer(1, random.pick([3, 900, 90_000])))
    return Buffer.concat([Buffer.from(HEADS.chunked), chunked(body, sizes), Buffer.from(COMPLETE)])
  }

  function somePcap(random: SeededRandom): Buffer {
    const packets = Array.from({ length: random.integer(1, 200) }, (_, number) =>
      makePacket(BigInt(number), `packet ${number}`, random.integer(20, 1_400)),
    )
    return makePcap(packets)
  }

  /** Enough of it to be opened, in chunks of one byte too. */
  function unfinished(answer: Buffer, random: SeededRandom): Buffer {
    const mostBytes = answer.length - 1
    return answer.subarray(0, random.integer(Math.min(HEADS.chunked.length + 24 * 6, mostBytes), mostBytes))
  }

  function dataBytes(answer: Buffer): number {
    const body = answer.subarray(answer.indexOf('\r\n\r\n') + 4)
    if (answer.indexOf(HEADS.plain) === 0) return body.length
    return Buffer.concat(framingFor('chunked').walk(body).data).length
  }

  interface Again {
    /** What the device sends of its first answer; then it hangs. */
    readonly first: Buffer
    readonly answers: readonly Buffer[]
    readonly lengths: readonly number[]
  }

  /** Parks the relay whenever the device hangs, and lets the device begin again with its next answer. */
  async function parkAndGoOn<Answer>(again: Again, ask: () => Promise<Answer>): Promise<Answer> {
    begin = Promise.withResolvers()
    device.answer = { writes: pieces(again.first, again.lengths), end: 'hang' }
    const asked = ask()
    // Its failure is the caller's to see.
    asked.catch(() => undefined)
    const { relay, sentSoFar, open } = await begin.promise
    let goal = 0
    for (const [index, bytes] of again.answers.entries()) {
      await device.until(() => device.isHanging)
      const reaches = () => Number(sentSoFar().bytes) >= goal
      await eventually(reaches, { limitMs: 5_000, message: `${goal} bytes were sent` })
      goal = dataBytes(bytes)
      relay.park()
      await device.until(() => device.connections === 0)
      const end = index === again.answers.length - 1 ? 'close' : 'hang'
      device.answer = { writes: pieces(bytes, again.lengths), end }
      relay.goOn(await open(), sentSoFar())
    }
    return asked
  }

  test('every byte arrives once, wherever the device and its chunks stopped', async (t) => {
    const random = seededRandom()
    t.diagnostic(`SEED=${random.seed}`)
    for (let round = 0; round < ROUNDS; round++) {
      const body = somePcap(random)
      const lengths = [random.integer(1, 40), random.integer(1, 3_000), random.integer(1, 90_000)]
      const [first, second] = [1, 2]
        .map(() => unfinished(answerOf(body, random), random))
        .sort((a, b) => dataBytes(a) - dataBytes(b)) as [Buffer, Buffer]
      const answers = [second, answerOf(body, random)]
      const again = { first, answers, lengths }
      const { body: received } = await parkAndGoOn(again, () => httpGet(front.url))
      assert.ok(received.equals(body), `round ${round}`)
    }
  })

  test('an HTTP/1.0 client gets the plain bytes', async () => {
    const random = seededRandom(1)
    const body = somePcap(random)
    const answer = answerOf(body, random)
    const again = { first: answer.subarray(0, answer.length / 2), answers: [answer], lengths: [999] }
    const received = await parkAndGoOn(again, async () => {
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
    const chunkedAnswer = (bytes: Buffer, sizes: readonly number[]) =>
      Buffer.concat([Buffer.from(HEADS.chunked), chunked(bytes, sizes), Buffer.from(COMPLETE)])
    const first = chunkedAnswer(body, [30_000]).subarray(0, 20_000)

    for (const [what, changed] of [
      ['a packet before it has gone', makePcap(packets.slice(1))],
      ['a byte before it is another one', Buffer.from(body).fill(1, 15_000, 15_001)],
      ['the device has less than was sent', makePcap(packets.slice(0, 10))],
      ['the device has less than its last chunk was to hold', makePcap(packets.slice(0, 35))],
    ] as const) {
      test(`${what}`, async () => {
        const again = { first, answers: [chunkedAnswer(changed, [500])], lengths: [1_000] }
        await assert.rejects(parkAndGoOn(again, () => httpGet(front.url)))
        assert.match(String(front.ends.at(-1)), /does not hold the same packets/)
      })
    }

    test('it must go on but the device breaks off', async () => {
      const again = { first, answers: [chunkedAnswer(body, [500]).subarray(0, 25_000)], lengths: [1_000] }
      await assert.rejects(parkAndGoOn(again, () => httpGet(front.url)))
      assert.match(String(front.ends.at(-1)), /closed the connection inside its answer/)
    })
  })

  test('would be caught if it sent a byte twice', async () => {
    // The negative control: somebody says that less was sent.
    const body = makePcap([makePacket(1n, 'x', 2_000)])
    const answer = Buffer.concat([Buffer.from(HEADS.plain), body])
    begin = Promise.withResolvers()
    device.answer = { writes: [answer.subarray(0, -500)], end: 'hang' }
    const asked = httpGet(front.url)
    const { relay, open } = await begin.promise
    await device.until(() => device.isHanging)
    relay.park()
    await device.until(() => device.connections === 0)
    device.answer = { writes: [answer] }
    relay.goOn(await open(), { bytes: String(body.length - 501), overBytes: 0, crc32: 0 })
    assert.ok(!(await asked).body.equals(body))
  })
})
