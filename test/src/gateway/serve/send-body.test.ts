import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { sendBody } from '../../../../src/gateway/serve/send-body.ts'
import { eventually } from '../../../support/eventually.ts'
import { httpGet, httpOpen } from '../../../support/http-get.ts'
import { pause } from '../../../support/pause.ts'

const CHUNK_BYTES = 4 * 1_048_576

/** A server whose answers are those of `answer`; returns its address. */
async function serve(answer: (res: ServerResponse) => Promise<void>) {
  const server = createServer((_req, res) => void answer(res))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    [Symbol.dispose]: () => {
      server.close()
      server.closeAllConnections()
    },
  }
}

/** Chunks in two buffers used alternately, as a body may deliver them. */
function reusedChunks(count: number, state: { asked: number }) {
  const buffers = [Buffer.alloc(70_000), Buffer.alloc(70_000)] as const
  async function* chunks(): AsyncGenerator<Uint8Array> {
    for (let number = 0; number < count; number += 1) {
      state.asked += 1
      yield buffers[(number % 2) as 0 | 1].fill(number % 251)
    }
  }
  return chunks()
}

test('a chunk is valid until the second one after it is asked for: reused memory arrives unharmed', async () => {
  const signal = new AbortController().signal
  const sizes: number[] = []
  using server = await serve(async (res) => {
    const onChunk = (chunk: Uint8Array) => sizes.push(chunk.length)
    await sendBody(reusedChunks(300, { asked: 0 }), res, { signal, onChunk })
    res.end()
  })
  const { body } = await httpGet(server.url)
  assert.equal(body.length, 300 * 70_000)
  for (let number = 0; number < 300; number += 1) {
    const chunk = body.subarray(number * 70_000, (number + 1) * 70_000)
    assert.ok(chunk.equals(Buffer.alloc(70_000, number % 251)), `chunk ${number}`)
  }
  assert.deepEqual(sizes, Array(300).fill(70_000))
})

test('with a client that does not read, no more than two chunks are in flight; the signal ends it', async () => {
  const abort = new AbortController()
  const reason = new Error('enough')
  let asked = 0
  async function* chunks(): AsyncGenerator<Uint8Array> {
    for (;;) {
      asked += 1
      yield Buffer.alloc(CHUNK_BYTES)
    }
  }
  let failed: unknown
  using server = await serve(async (res) => {
    await sendBody(chunks(), res, { signal: abort.signal, onChunk: () => undefined }).catch((error) => {
      failed = error
    })
  })
  using _answer = await httpOpen(server.url)
  let before = -1
  await eventually(
    async () => {
      const still = asked === before
      before = asked
      await pause(50, 'two looks at what has been read are to differ if it moves')
      return still && asked === before
    },
    { message: 'nothing moves any more' },
  )
  assert.ok(asked < 20, `${asked} chunks were asked for`)
  abort.abort(reason)
  await eventually(() => failed === reason, { message: 'the signal ends the body' })
})
