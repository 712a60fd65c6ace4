// How much a gateway holds per device of a merge if the client is slow and all buffers are full.
import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { after, before, test } from 'node:test'
import { slowReader } from '../../support/clients/slow-consumer.ts'
import { FakeDevice } from '../../support/devices/fake-device.ts'
import { makePacket, makePcap } from '../../support/packets/packet-maker.ts'
import { GATEWAY_AUTHORIZATION, GatewayProcess } from '../../support/processes/gateway-process.ts'
import { TempRedis } from '../../support/processes/temp-redis.ts'
import { tempFolder } from '../../support/temp-folder.ts'

const DEVICES = 64
const START_NS = 1_700_000_000_000_000_000n
const PACKETS = 1_500
const PCAP = makePcap(
  Array.from({ length: PACKETS }, (_, number) => makePacket(START_NS + BigInt(number), `${number}`, 1_400)),
)
const RANGE = `TSBegin=${START_NS}&TSEnd=${START_NS + BigInt(PACKETS)}&TSUnit=nanos`
/** All devices are read at a few percent of their speed. */
const CLIENT_BYTES_PER_SECOND = 32 * 1_048_576
const GROWTH_PER_DEVICE_MAX = 1_048_576
/** The minimum: one full read buffer. */
const GROWTH_PER_DEVICE_MIN = 0.125 * 1_048_576
const SAMPLE_MS = 20

const owned = new AsyncDisposableStack()
let gateway: GatewayProcess

before(async () => {
  const redis = owned.use(await TempRedis.create())
  const folder = owned.use(await tempFolder())
  const names = Array.from({ length: DEVICES }, (_, index) => `d${index}`)
  const devices = await Promise.all(names.map((name) => FakeDevice.start(name, PCAP)))
  for (const device of devices) owned.use(device)
  gateway = owned.use(
    await GatewayProcess.start({
      folder: folder.path,
      name: 'gateway',
      environment: {
        FAKE_DEVICE_PASSWORD: devices[0]?.password ?? '',
        // Measures what is held, not how late V8 collects garbage or malloc returns freed pages.
        NODE_OPTIONS: '--max-semi-space-size=1',
        MALLOC_MMAP_THRESHOLD_: '32768',
      },
      config: { redis: { url: redis.url }, devices: devices.map(({ config }) => config) },
    }),
  )
})
after(() => owned.disposeAsync())

test('64 devices of a merge take at most 1 MiB each, with a slow client', async (t) => {
  // Compiled, and with the heap of a busy gateway, but without buffers for many devices.
  for (let round = 0; round < 40; round++) await merge('Device=d0,d1,d2,d3', Number.POSITIVE_INFINITY)
  const { rssBytes } = await gateway.usage()
  const usualBytes = await usualDuring(() => merge('Device=*', CLIENT_BYTES_PER_SECOND))
  const growth = (usualBytes - rssBytes) / DEVICES
  t.diagnostic(
    `${(growth / 1_048_576).toFixed(2)} MiB per device over ${Math.round(rssBytes / 1_048_576)} MiB`,
  )
  assert.ok(growth <= GROWTH_PER_DEVICE_MAX, `${growth} bytes per device`)
  assert.ok(growth >= GROWTH_PER_DEVICE_MIN, 'the measure does not see the buffers')
})

async function merge(choice: string, bytesPerSecond: number): Promise<void> {
  const answer = await fetch(`${gateway.url}/api/v1/pcap/timerange?${RANGE}&${choice}`, {
    headers: { authorization: GATEWAY_AUTHORIZATION },
  })
  assert.equal(answer.status, 200, answer.status === 200 ? '' : await answer.text())
  assert.ok(answer.body)
  await slowReader(Readable.fromWeb(answer.body as Parameters<typeof Readable.fromWeb>[0]), {
    bytesPerSecond,
  })
}

/** The median: the buffers are always full, while garbage comes and goes. */
async function usualDuring(work: () => Promise<void>): Promise<number> {
  const samples: number[] = []
  const look = async () => samples.push((await gateway.usage()).rssBytes)
  const timer = setInterval(() => void look(), SAMPLE_MS)
  try {
    await work()
  } finally {
    clearInterval(timer)
  }
  return samples.sort((a, b) => a - b)[Math.floor(samples.length / 2)] ?? 0
}
