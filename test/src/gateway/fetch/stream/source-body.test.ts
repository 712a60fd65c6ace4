import assert from 'node:assert/strict'
import { test } from 'node:test'
import { NO_OPEN_CHUNK } from '../../../../../src/gateway/device/body-framing.ts'
import type { BodyRead } from '../../../../../src/gateway/device/device-stream.ts'
import { type BodyStream, SourceBody } from '../../../../../src/gateway/fetch/stream/source-body.ts'

/** Reads that arrive when the test says so, and which of them were released. */
class HandStream implements BodyStream {
  readonly head = { headers: { trailer: 'Capfleet-Complete' } } as unknown as BodyStream['head']
  readonly trailers = { 'capfleet-complete': '1' }
  readonly released: string[] = []
  readonly #arrived: BodyRead[] = []
  #wanted: PromiseWithResolvers<BodyRead | undefined> | undefined

  pour = () => Promise.reject(new Error('it is pulled'))
  confirmEnd = () => Promise.resolve();
  [Symbol.dispose] = () => undefined

  arrive(...pieces: readonly string[]): void {
    const data = pieces.map((piece) => Buffer.from(piece))
    const release = () => void this.released.push(pieces.join())
    const read = { data, framed: data, open: NO_OPEN_CHUNK, release }
    if (this.#wanted === undefined) this.#arrived.push(read)
    else this.#answer(read)
  }

  end(): void {
    this.#answer(undefined)
  }

  take(): BodyRead | undefined {
    return this.#arrived.shift()
  }

  next(): Promise<BodyRead | undefined> {
    this.#wanted = Promise.withResolvers()
    return this.#wanted.promise
  }

  #answer(read: BodyRead | undefined): void {
    this.#wanted?.resolve(read)
    this.#wanted = undefined
  }
}

test('gives piece by piece what has arrived, then what comes, and releases a read when its pieces are used up', async () => {
  const body = new HandStream()
  const chunks = bodyOf(body)
  assert.equal(chunks.take(), undefined)
  body.arrive('a', 'b')
  body.arrive('c')
  assert.equal(String(chunks.take()), 'a')
  assert.equal(String((await chunks.next()).value), 'b')
  assert.deepEqual(body.released, [])
  assert.equal(String(chunks.take()), 'c')
  assert.deepEqual(body.released, ['a,b'])
  const coming = chunks.next()
  assert.deepEqual(body.released, ['a,b', 'c'])
  body.arrive()
  body.arrive('d')
  assert.equal(String((await coming).value), 'd')
  const last = chunks.next()
  body.end()
  assert.equal((await last).done, true)
  assert.deepEqual(body.released, ['a,b', 'c', '', 'd'])
  assert.deepEqual([chunks.take(), (await chunks.next()).done], [undefined, true])
})

test('given back, it releases what it holds and what comes afterwards', async () => {
  const holding = new HandStream()
  const held = bodyOf(holding)
  holding.arrive('a', 'b')
  assert.equal(String(held.take()), 'a')
  await held.return()
  assert.deepEqual(holding.released, ['a,b'])
  assert.equal(held.take(), undefined)
  const waiting = new HandStream()
  const chunks = bodyOf(waiting)
  const coming = chunks.next()
  await chunks.return()
  waiting.arrive('late')
  assert.equal((await coming).done, true)
  assert.deepEqual(waiting.released, ['late'])
})

function bodyOf(stream: BodyStream): SourceBody {
  return new SourceBody(stream, { device: 'd0', encoding: 'none', first: [], isRelayed: false })
}
