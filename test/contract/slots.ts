/** Downloads that are held open, so that all four streams of a device are in use. */
import assert from 'node:assert/strict'
import { eventually } from '../support/eventually.ts'
import { BIG } from './contract-captures.ts'
import type { Place } from './place.ts'

export const HELD = `/api/v1/pcap/single?StreamName=${BIG}`

/** Open downloads of one place. Dispose ends them and waits until the device has its streams back. */
export class HeldDownloads implements AsyncDisposable {
  readonly #at: Place
  readonly #answers = new DisposableStack()

  constructor(at: Place) {
    this.#at = at
  }

  async open(target: string): Promise<void> {
    const { response } = this.#answers.use(await this.#at.open(target, { as: 'user' }))
    assert.equal(response.statusCode, 200)
  }

  /** All clients leave. */
  release(): void {
    this.#answers.dispose()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.release()
    await usesSlots(this.#at, 0)
  }
}

/** Starts this many downloads on the route and does not read them. */
export async function holdDownloads(at: Place, count: number): Promise<HeldDownloads> {
  await using owner = new AsyncDisposableStack()
  const held = owner.use(new HeldDownloads(at))
  for (let index = 0; index < count; index++) await held.open(`${HELD}&rand=${index}`)
  await usesSlots(at, count)
  owner.move()
  return held
}

/** Waits until the device counts this many. The API allows one second; a busy machine may take longer. */
export async function usesSlots(at: Place, count: number): Promise<void> {
  const isSo = async (): Promise<boolean> => (await at.appliance.slotsUsed()) === count
  await eventually(isSo, { message: `${count} downloads` })
}

/** A fifth download is rejected at once. */
export async function refusesFifth(at: Place): Promise<void> {
  await using _held = await holdDownloads(at, 4)
  const fifth = await at.ask(`${HELD}&Wait=0`, { as: 'user' })
  assert.equal(fifth.status, 503, fifth.text.slice(0, 300))
  assert.equal(fifth.json().code, at.route === 'device' ? 'download-slots-exhausted' : 'queue-timeout')
  assert.match(String(fifth.headers['retry-after']), /^\d+$/)
}
