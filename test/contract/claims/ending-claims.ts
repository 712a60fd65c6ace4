/** Section 1 of the decisions: how answers end, and which requests change something. */
import assert from 'node:assert/strict'
import { rawAnswers, rawExchange } from '../../support/clients/raw-client.ts'
import { readPcap } from '../../support/packets/pcap-records.ts'
import { type Claim, heldBy, row, THROUGH_GATEWAY } from '../claim.ts'
import { ALPHA, packetsOf } from '../contract-captures.ts'
import { SINGLE, START_CAPTURE, STOP_CAPTURE } from '../contract-queries.ts'
import type { Place } from '../place.ts'

/** The form for a client with HTTP/1.0: no chunks, no trailers. */
async function oldClient(at: Place, target: string) {
  const { pathname, search } = new URL(at.urlOf(target))
  const { authorization } = at.headersOf('full')
  const head = `GET ${pathname}${search} HTTP/1.0\r\nHost: x\r\nAuthorization: ${authorization}\r\nTE: trailers\r\n\r\n`
  const bytes = await rawExchange(at.base, head)
  const end = bytes.indexOf('\r\n\r\n')
  return { head: bytes.subarray(0, end).toString('latin1'), body: bytes.subarray(end + 4) }
}

/** Every status line in an answer, of which there must be only one. */
async function noInterim(at: Place): Promise<void> {
  const { pathname, search } = new URL(at.urlOf(SINGLE))
  const { authorization } = at.headersOf('full')
  const bytes = await rawExchange(
    at.base,
    `GET ${pathname}${search} HTTP/1.1\r\nHost: x\r\nAuthorization: ${authorization}\r\nConnection: close\r\n\r\n`,
  )
  assert.deepEqual(
    rawAnswers(bytes).map(({ status, isWhole }) => [status, isWhole]),
    [[200, true]],
  )
}

const CROSS_SITE = { 'sec-fetch-site': 'cross-site' }

export const ENDING_CLAIMS: readonly Claim[] = [
  heldBy(
    'test/appliance/compatibility.test.ts',
    '10. a cut stream: curl fails and tcpdump exits 1',
    'D1-19',
    'A failure behind the first byte writes a part of a record and resets the connection.',
  ),
  heldBy(
    'test/src/shared/http/cut-response.test.ts',
    'an HTTP/1.0 client sees a reset, and tcpdump the cut',
    'D1-20',
    'A short stream never ends politely, neither through HTTP/1.0.',
  ),
  row('D1-21', '102 Processing and other interim answers are never sent.', { act: noInterim }),
  row('D1-22', 'No trailers are announced to HTTP/1.0.', {
    act: async (at) => {
      const { head, body } = await oldClient(at, SINGLE)
      assert.match(head, /^HTTP\/1\.[01] 200 /)
      assert.doesNotMatch(head, /^(trailer|transfer-encoding):/im)
      assert.equal(readPcap(body).records.length, packetsOf('alpha').length)
    },
  }),
  row('D1-23', 'Trailers of a whole download tell that it is complete, packets and bytes.', {
    get: SINGLE,
    see: ({ trailers, body }) =>
      assert.deepEqual(
        [trailers['capfleet-complete'], trailers['capfleet-packets'], trailers['capfleet-bytes']],
        ['1', String(packetsOf('alpha').length), String(body.length)],
      ),
  }),
  row('D1-24', 'The receipt says the same.', {
    get: SINGLE,
    out: THROUGH_GATEWAY,
    see: async ({ headers, body }, at) => {
      const receipt = await at.receiptOf(headers)
      assert.deepEqual(
        [receipt.status, receipt.packets, receipt.bytes],
        ['complete', String(packetsOf('alpha').length), String(body.length)],
      )
    },
  }),
  heldBy(
    'test/src/gateway/gateway-load.test.ts',
    'a device killed in the middle of a merge: the body is cut, the next request is 502 at once, and it recovers',
    'D1-25',
    'Between gateway and appliance a stream without its completion trailer was cut.',
  ),
  row(
    'D1-26',
    'What changes state by GET needs a role of its own.',
    ...[`${START_CAPTURE}?StreamName=x`, STOP_CAPTURE, `/pcap/del?StreamName=${ALPHA}`].map((get) => ({
      get,
      as: 'user' as const,
      problem: ['insufficient-scope'] as const,
    })),
  ),
  row(
    'D1-27',
    'It is refused when Sec-Fetch-Site says cross-site.',
    ...[`${START_CAPTURE}?StreamName=x`, STOP_CAPTURE, `/pcap/del?StreamName=${ALPHA}`].map((get) => ({
      get,
      headers: CROSS_SITE,
      problem: ['cross-site'] as const,
    })),
  ),
  row('D1-28', 'The gateway has twins by POST and DELETE.', {
    out: THROUGH_GATEWAY,
    act: async (at) => {
      await at.appliance.get(STOP_CAPTURE)
      assert.equal((await at.ask(`${START_CAPTURE}?StreamName=posted`, { method: 'POST' })).status, 200)
      assert.equal((await at.ask(STOP_CAPTURE, { method: 'POST' })).status, 200)
      const name = `deleted${at.route}_20260920_1413`
      await at.stand.importSmall('east', name)
      assert.equal((await at.ask(`/pcap/del?StreamName=${name}`, { method: 'DELETE' })).status, 200)
    },
  }),
]
