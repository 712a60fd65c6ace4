// A relay whose client is slow releases its stream to waiting requests; the client's file does not change.
import assert from 'node:assert/strict'
import { buffer } from 'node:stream/consumers'
import { after, before, describe, test } from 'node:test'
import { simulatedMerge, simulatedRange } from '../../../support/devices/simulated-capture.ts'
import { eventually } from '../../../support/eventually.ts'
import { httpGet, httpOpen, type OpenAnswer } from '../../../support/http-get.ts'
import {
  type SimulatedWorld,
  startSimulatedWorld,
} from '../../../support/processes/gateway-over-simulated.ts'
import { startTempGateway } from '../../../support/processes/temp-gateway.ts'

/** Far more than all buffers between a device and a client that does not read. */
const PACKETS = 30_000
const SLOTS = 4
const TURN_MS = 200
/** No request may miss its stream because the machine is busy. */
const WAIT_S = 600
const SETTINGS = { parkAfterMs: TURN_MS, waitMaxS: WAIT_S }
const PATH = `/devices/d0/api/v1/pcap/timerange?${simulatedRange(PACKETS)}`

describe('a relay that is parked', () => {
  let world: SimulatedWorld
  const whole = simulatedMerge([0], PACKETS)

  before(async () => {
    world = await startSimulatedWorld({
      devices: 1,
      packets: PACKETS + 1,
      packetsPerTick: 2_500,
      settings: { downloads: SETTINGS },
    })
  })
  after(() => world[Symbol.asyncDispose]())

  const open = (path = PATH) => httpOpen(world.gateway.url + path, { headers: world.gateway.as.user })
  const get = (path: string) => httpGet(world.gateway.url + path, { headers: world.gateway.as.user })
  const parkedCount = () => world.gateway.logged.filter(({ event }) => event === 'download.parked').length
  const receiptOf = async ({ response }: OpenAnswer) =>
    (await get(`/v1/requests/${response.headers['capfleet-request-id']}`)).json()

  /** As many clients as there are streams; they do not read. */
  async function stall(): Promise<readonly OpenAnswer[]> {
    const answers: OpenAnswer[] = []
    for (let number = 0; number < SLOTS; number += 1) answers.push(await open())
    return answers
  }

  async function untilParked(before: number): Promise<void> {
    await eventually(() => parkedCount() > before, { message: 'somebody is parked' })
  }

  const untilNothingIsLeft = () =>
    eventually(async () => (await world.redis.leftovers('capfleet')).length === 0, {
      message: 'no lease is left',
    })

  test('gives its stream to a waiting request, and its own file is whole in the end', async () => {
    const slow = await stall()
    const waited = await get(`${PATH}&Wait=${WAIT_S}`)
    assert.ok(waited.body.equals(whole))
    assert.ok(parkedCount() >= 1)
    const bodies = await Promise.all(slow.map(({ response }) => buffer(response)))
    for (const body of bodies) assert.ok(body.equals(whole))
    for (const answer of slow) assert.equal((await receiptOf(answer)).status, 'complete')
    assert.deepEqual(world.devices[0]?.fifths, [])
    await untilNothingIsLeft()
  })

  test('gives everything back when its client leaves', async () => {
    const parked = parkedCount()
    const slow = await stall()
    using waiting = await open(`${PATH}&Wait=${WAIT_S}`)
    await untilParked(parked)
    for (const answer of [...slow, waiting]) answer[Symbol.dispose]()
    await untilNothingIsLeft()
  })

  test('is cut if its client does not read for too long', async () => {
    await using impatient = await startTempGateway(world.members, world.redis.url, {
      downloads: { ...SETTINGS, parkedIdleTimeoutMs: 500 },
    })
    const openHere = (path: string) => httpOpen(impatient.url + path, { headers: impatient.as.user })
    const slow = await Promise.all(Array.from({ length: SLOTS }, () => openHere(PATH)))
    using waiting = await openHere(`${PATH}&Wait=${WAIT_S}`)
    const codes = async () =>
      (await Promise.all(slow.map(receiptOf))).map(({ error }) => (error as { code: string } | null)?.code)
    await eventually(async () => (await codes()).includes('client-timeout'), {
      message: 'a parked client is given up',
    })
    for (const answer of [...slow, waiting]) answer[Symbol.dispose]()
    await untilNothingIsLeft()
  })

  test('is cut visibly when the device holds other packets by then', async () => {
    const parked = parkedCount()
    const slow = await stall()
    using waiting = await open(`${PATH}&Wait=${WAIT_S}`)
    await untilParked(parked)
    world.devices[0]?.holdCaptureOf(1)
    waiting[Symbol.dispose]()
    const ends = await Promise.allSettled(slow.map(({ response }) => buffer(response)))
    const cut = ends.filter(({ status }) => status === 'rejected')
    assert.ok(cut.length >= 1)
    const receipts = await Promise.all(slow.map(receiptOf))
    const failed = receipts.filter(({ status }) => status === 'failed')
    assert.equal(failed.length, cut.length)
    for (const { error } of failed) assert.equal((error as { code: string }).code, 'aged-out')
    for (const end of ends) assert.ok(end.status === 'rejected' || end.value.equals(whole))
    await untilNothingIsLeft()
  })
})
