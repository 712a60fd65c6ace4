import assert from 'node:assert/strict'
import { test } from 'node:test'
import { RecordLimiter } from '../../../src/pcap/limit-records.ts'
import { makePacket, makeRecord } from '../../support/packet-maker.ts'
import { seededRandom } from '../../support/seeded-random.ts'

const records = Array.from({ length: 40 }, (_, index) =>
  makeRecord(
    makePacket(1_700_000_000_000_000_000n + BigInt(index), `packet ${index}`, 20 + ((index * 7) % 50)),
  ),
)

/** In chunks of so many whole records; remembers whether it was closed. */
function chunksOf(counts: () => number): { chunks: AsyncGenerator<Buffer>; closed: () => boolean } {
  let isClosed = false
  async function* generate(): AsyncGenerator<Buffer> {
    try {
      for (let at = 0; at < records.length; ) {
        const count = counts()
        yield Buffer.concat(records.slice(at, at + count))
        at += count
      }
    } finally {
      isClosed = true
    }
  }
  return { chunks: generate(), closed: () => isClosed }
}

async function passed(limiter: RecordLimiter, counts: () => number): Promise<Buffer> {
  const { chunks, closed } = chunksOf(counts)
  const out: Buffer[] = []
  for await (const chunk of limiter.pass(chunks)) out.push(chunk)
  assert.ok(closed())
  return Buffer.concat(out)
}

test('passes exactly the records that both limits allow, however they are cut into chunks', async () => {
  const random = seededRandom()
  for (let round = 0; round < 200; round++) {
    const maxPackets = random.integer(1, 45)
    const maxBytes = random.integer(0, 2_600)
    let expected = 0
    let bytes = 0
    while (expected < maxPackets && expected < records.length) {
      const length = records[expected]?.length ?? 0
      if (bytes + length > maxBytes) break
      bytes += length
      expected++
    }
    const limiter = new RecordLimiter({
      maxPackets: BigInt(maxPackets),
      maxBytes: BigInt(maxBytes),
      nanoseconds: true,
    })
    const body = await passed(limiter, () => random.integer(1, 12))
    assert.ok(body.equals(Buffer.concat(records.slice(0, expected))), `SEED=${random.seed} round ${round}`)
    assert.equal(limiter.packets, BigInt(expected))
    const nextNs = expected === records.length ? undefined : 1_700_000_000_000_000_000n + BigInt(expected)
    assert.equal(limiter.nextNs, nextNs)
  }
})

test('a limit that is just reached leaves nothing out', async () => {
  const maxBytes = BigInt(records.reduce((sum, { length }) => sum + length, 0))
  const limiter = new RecordLimiter({ maxPackets: 40n, maxBytes, nanoseconds: true })
  assert.equal((await passed(limiter, () => 7)).length, Number(maxBytes))
  assert.equal(limiter.nextNs, undefined)
})
