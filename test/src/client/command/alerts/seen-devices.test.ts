import assert from 'node:assert/strict'
import { test } from 'node:test'
import { devicesThatSaw } from '../../../../../src/client/command/alerts/seen-devices.ts'
import { GatewayClient } from '../../../../../src/client/gateway-client.ts'

const SPANS = [{ fromNs: '1', toNs: '2' }]
const END = {
  end: true,
  addresses: 2,
  devices: 5,
  complete: true,
  unanswered: [],
  partial: [],
  agedOut: [],
  otherLinkTypes: [],
}
const saw = (device: string, address: string) => ({ device, address, spans: SPANS })

const ASKED_MS = Date.UTC(2026, 10, 2, 9)

/** A client whose gateway answers with these lines. */
function clientOf(lines: readonly object[], { status = 200, isDated = true } = {}): GatewayClient {
  const text = lines.map((line) => `${JSON.stringify(line)}\n`).join('')
  return new GatewayClient({ url: 'http://gateway/' }, async () => ({
    status,
    headers: new Headers(isDated ? { date: new Date(ASKED_MS).toUTCString() } : {}),
    body: (async function* () {
      yield Buffer.from(text)
    })(),
    [Symbol.dispose]: () => undefined,
  }))
}

interface Answered {
  readonly status?: number
  readonly isDated?: boolean
  readonly untilNs?: bigint
}

const ask = (lines: readonly object[], { untilNs, ...answered }: Answered = {}) =>
  devicesThatSaw(
    clientOf(lines, answered),
    { hosts: ['10.0.0.1', '10.0.0.2'], query: [], untilNs },
    new AbortController().signal,
  )

test('names the devices that saw all addresses, and those that cannot say', async () => {
  const lines = [
    saw('both', '10.0.0.1'),
    saw('one', '10.0.0.1'),
    saw('both', '10.0.0.2'),
    { device: 'down', error: { code: 'device-unreachable', detail: 'it does not answer' } },
    {
      ...END,
      complete: false,
      unanswered: ['down'],
      partial: ['damaged'],
      otherLinkTypes: [{ device: 'wireless', linkTypes: [127] }],
    },
  ]
  assert.deepEqual(await ask(lines), ['both', 'damaged', 'down', 'wireless'])
})

test('knows nothing if no device saw them, if the answer breaks off, and if the gateway rejects the search', async () => {
  assert.equal(await ask([saw('one', '10.0.0.1'), END]), undefined)
  assert.equal(await ask([saw('both', '10.0.0.1'), saw('both', '10.0.0.2')]), undefined)
  assert.equal(
    await ask([{ code: 'bad-parameter', detail: 'x', param: 'Verify' }], { status: 400 }),
    undefined,
  )
})

test('knows nothing of packets that devices may still be capturing', async () => {
  const lines = [saw('both', '10.0.0.1'), saw('both', '10.0.0.2'), END]
  const minuteBeforeNs = BigInt(ASKED_MS - 60_000) * 1_000_000n
  assert.deepEqual(await ask(lines, { untilNs: minuteBeforeNs }), ['both'])
  assert.equal(await ask(lines, { untilNs: minuteBeforeNs + 1n }), undefined)
  assert.equal(await ask(lines, { untilNs: minuteBeforeNs, isDated: false }), undefined)
})
