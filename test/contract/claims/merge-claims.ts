/** Section 6 of the decisions: waiting and merging at the gateway. */
import assert from 'node:assert/strict'
import { httpGet } from '../../support/http-get.ts'
import { readPcap } from '../../support/packets/pcap-records.ts'
import { type Claim, FLEET_ONLY, heldBy, packets, row, THROUGH_GATEWAY } from '../claim.ts'
import { IN_RANGE, RANGE } from '../contract-queries.ts'
import type { Place } from '../place.ts'
import { HELD, holdDownloads } from '../slots.ts'

type Entry = Readonly<Record<string, unknown>>
const MERGE = `${RANGE}&Device=*`
const MERGED = packets(['alpha', 'gamma'], IN_RANGE)
const MERGE_TEST = 'test/src/gateway/fetch/body/merged-body.test.ts'

/** If a device cannot be reached, the answers of the others still come. */
async function partial(at: Place): Promise<void> {
  const { url, as } = at.stand.lame
  const headers = { ...as.user, te: 'trailers' }
  const answer = await httpGet(`${url}${RANGE}&Device=east,dead&OnError=partial`, { headers })
  assert.equal(answer.status, 200, answer.body.toString('utf8', 0, 300))
  assert.equal(readPcap(answer.body).records.length, readPcap((await at.ask(RANGE)).body).records.length)
  assert.match(String(answer.trailers['capfleet-missing']), /^dead;/)
  const id = String(answer.headers['capfleet-request-id'])
  const receipt = (await httpGet(`${url}/v1/requests/${id}`, { headers: as.user })).json()
  assert.equal(receipt.status, 'partial')
  const dead = (receipt.devices as readonly Entry[]).find(({ device }) => device === 'dead')
  assert.ok(dead?.missing, 'the receipt names what is missing')
}

export const MERGE_CLAIMS: readonly Claim[] = [
  row(
    'D6-19',
    'A download without a free stream is held without a byte for Wait seconds, then 503 with Retry-After and its place.',
    {
      out: THROUGH_GATEWAY,
      act: async (at) => {
        await using _held = await holdDownloads(at, 4)
        const beganMs = performance.now()
        const answer = await at.ask(`${HELD}&Wait=1`, { as: 'user' })
        assert.ok(performance.now() - beganMs > 900)
        assert.deepEqual([answer.status, answer.headers['capfleet-queue-position']], [503, '1'])
        assert.match(String(answer.headers['retry-after']), /^\d+$/)
      },
    },
  ),
  heldBy(
    'test/src/gateway/gateway-config.test.ts',
    'the example loads, and its values are the defaults',
    'D6-20',
    'Wait is 25 s by default and 55 s at most.',
  ),
  row('D6-21', 'Queue=job answers 202 with an export.', {
    out: THROUGH_GATEWAY,
    act: async (at) => {
      const answer = await at.ask(`${RANGE}&Queue=job`, { as: 'user' })
      assert.equal(answer.status, 202, answer.text)
      assert.equal(answer.headers.location, `/v1/exports/${answer.json().id}`)
    },
  }),
  row('D6-22', 'All devices of a merge must have answered before the gateway answers 200.', {
    out: FLEET_ONLY,
    act: async (at) => {
      const { url, as } = at.stand.lame
      const answer = await httpGet(`${url}${RANGE}&Device=east,dead`, { headers: as.user })
      assert.deepEqual([answer.status, answer.json().code], [502, 'device-unreachable'])
    },
  }),
  heldBy(
    'test/src/gateway/gateway-load.test.ts',
    'a device killed in the middle of a merge: the body is cut, the next request is 502 at once, and it recovers',
    'D6-23',
    'With OnError=fail, the default, a merge whose device is lost is cut.',
  ),
  row('D6-24', 'With OnError=partial it goes on, and the receipt names what is missing.', {
    act: partial,
    out: FLEET_ONLY,
  }),
  heldBy(
    MERGE_TEST,
    'a device that dies anywhere is continued: the body is the same to the byte',
    'D6-25',
    'A device that dies is asked again from the last packet on, and the file is that of an undisturbed run.',
  ),
  row(
    'D6-26',
    'The order is that of the times in the records; of equal times that of the devices, then of arrival.',
    { get: MERGE, pcap: MERGED, out: FLEET_ONLY },
  ),
  heldBy(
    'test/e2e/packets/fleet-queries.test.ts',
    'in a vendor’s time the devices are merged by that time',
    'D6-27',
    'By the time of a switch an appliance sorts within a window; a late record never blocks the merge.',
  ),
  row('D6-28', 'What comes late is counted.', {
    get: `${MERGE}&TSMode=vendorA7150_overwrite`,
    out: FLEET_ONLY,
    see: ({ trailers }) => assert.match(String(trailers['capfleet-late-packets']), /^\d+$/),
  }),
  heldBy(
    'test/src/gateway/serve/receipt-store.test.ts',
    'is found by another gateway, and goes after a day',
    'D6-29',
    'A receipt is kept for 24 hours.',
  ),
]
