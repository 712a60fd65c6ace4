import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { gzipSync, zstdCompressSync } from 'node:zlib'
import { decode } from '../../../../../src/gateway/fetch/encoding/decode.ts'
import { CapfleetError } from '../../../../../src/shared/base/error.ts'
import { inReusedChunks } from '../../../../support/packets/packet-maker.ts'

const DATA = Buffer.concat([randomBytes(200_000), Buffer.alloc(500_000, 'packet ')])
const ENCODE = { gzip: gzipSync, zstd: zstdCompressSync } as const

async function decoded(encoding: 'gzip' | 'zstd', bytes: Buffer): Promise<Buffer> {
  const chunks = inReusedChunks(bytes, 10_007)
  const all: Buffer[] = []
  for await (const chunk of decode({ device: 'rome', encoding, chunks })) all.push(Buffer.from(chunk))
  return Buffer.concat(all)
}

function isProtocolError(message: RegExp) {
  return (error: unknown) =>
    error instanceof CapfleetError && error.code === 'device-protocol' && message.test(error.message)
}

for (const encoding of ['gzip', 'zstd'] as const) {
  const encode = ENCODE[encoding]

  test(`${encoding}: several members one after another are one stream`, async () => {
    const bytes = Buffer.concat([encode(DATA), encode(Buffer.alloc(0)), encode(DATA)])
    assert.deepEqual(await decoded(encoding, bytes), Buffer.concat([DATA, DATA]))
  })

  test(`${encoding}: a stream that is cut or damaged is an error that names the device`, async () => {
    const bytes = encode(DATA)
    for (const cut of [bytes.length - 1, bytes.length >> 1]) {
      await assert.rejects(decoded(encoding, bytes.subarray(0, cut)), isProtocolError(/rome sent broken/))
    }
    const damaged = Buffer.from(bytes)
    damaged.fill(0xff, 1_000, 1_100)
    damaged.fill(0, bytes.length - 12)
    await assert.rejects(decoded(encoding, damaged), isProtocolError(/rome sent broken/))
  })

  test(`${encoding}: a bomb is stopped`, async () => {
    const bomb = encode(Buffer.alloc(100_000_000))
    await assert.rejects(decoded(encoding, bomb), isProtocolError(/more than 200 times its size/))
  })

  test(`${encoding}: an error of the stream itself comes out unchanged`, async () => {
    const failure = new Error('socket reset')
    async function* broken() {
      yield encode(DATA).subarray(0, 5_000)
      throw failure
    }
    const reading = async () => {
      for await (const _ of decode({ device: 'rome', encoding, chunks: broken() }));
    }
    await assert.rejects(reading, failure)
  })
}
