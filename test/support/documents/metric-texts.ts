/** The /metrics texts of the programs when all of them have done some work. */
import assert from 'node:assert/strict'
import { eventually } from '../eventually.ts'
import { ScriptedDriver } from '../live/scripted-driver.ts'
import { makePacket } from '../packets/packet-maker.ts'
import { startTempAppliance, type TempAppliance } from '../processes/temp-appliance.ts'
import { startTempGateway, type TempGateway } from '../processes/temp-gateway.ts'
import { TempRedis } from '../processes/temp-redis.ts'
import { startTempWorker } from '../processes/temp-worker.ts'

export interface MetricTexts {
  readonly gateway: string
  readonly worker: string
  readonly appliance: string
}

/** Recorded content and who accessed it: none of it may appear in a label. */
export const UNTOLD = { capture: 'secret-merger', user: 'user', filter: 'port 4711' } as const

/** What an appliance receives from its recorder and sensors some time after its start. */
const SEEN_LAST = [
  '\ncapfleet_capture_active 1\n',
  '\ncapfleet_capture_dropped_packets_total{',
  '\ncapfleet_disk_free_bytes{',
]

const BEGIN_NS = 1_790_000_000_000_000_000n
const SEGMENT_BYTES = 4_096
const HOUR_MS = 3_600_000

export async function metricTexts(): Promise<MetricTexts> {
  await using building = new AsyncDisposableStack()
  const redis = building.use(await TempRedis.create())
  const packets = Array.from({ length: 40 }, (_, at) =>
    makePacket(BEGIN_NS + BigInt(at) * 1_000_000n, `packet ${at}`, 200),
  )
  const driver = building.use(await ScriptedDriver.make([packets, packets], SEGMENT_BYTES))
  const appliance = building.use(await startTempAppliance({ driver }))
  const gateway = building.use(await gatewayOver(appliance, redis.url))
  const worker = building.use(await startTempWorker(gateway))
  await useAll(appliance, driver, gateway)
  const appliancesText = () => textOf(appliance.url)
  await eventually(
    async () => {
      const text = await appliancesText()
      return SEEN_LAST.every((series) => text.includes(series))
    },
    { message: 'the appliance has heard of the capture, its ports and the machine' },
  )
  return {
    gateway: await textOf(gateway.url, gateway.as.viewer),
    worker: await textOf(worker.url),
    appliance: await appliancesText(),
  }
}

function gatewayOver(appliance: TempAppliance, redisUrl: string): Promise<TempGateway> {
  const [user = '', password = ''] = appliance.credentials('full').split(':')
  const config = { name: 'east', url: appliance.url, user, password: { env: 'FAKE_DEVICE_PASSWORD' } }
  return startTempGateway([{ config, password }], redisUrl, {
    health: { intervalS: 0.5 },
    // Nobody listens there.
    tracing: { endpoint: 'http://127.0.0.1:9/v1/traces' },
  })
}

/** A capture, a download, an error, a call to a device, an export, and another export that is scheduled. */
async function useAll(appliance: TempAppliance, driver: ScriptedDriver, gateway: TempGateway): Promise<void> {
  const { capture, filter } = UNTOLD
  const endNs = BEGIN_NS + 30_000_000n
  await appliance.recorder.startCapture(capture)
  await driver.flushUntil(endNs)
  const range = `TSBegin=${BEGIN_NS}&TSEnd=${endNs}&FilterBPF=${encodeURIComponent(filter)}`
  const ask = async (path: string, status: number, method = 'GET') => {
    const answer = await fetch(gateway.url + path, { method, headers: gateway.as.user })
    assert.equal(answer.status, status, `${path}: ${await answer.clone().text()}`)
    return answer
  }
  await ask('/devices/east/api/v1/system/version', 200)
  await ask('/api/v1/pcap/timerange?TSBegin=never', 400)
  await (await ask(`/api/v1/pcap/timerange?${range}`, 200)).arrayBuffer()
  const ordered = await ask(`/v1/exports?${range}`, 202, 'POST')
  const { id } = (await ordered.json()) as { readonly id: string }
  await eventually(
    async () => {
      const shown = await ask(`/v1/exports/${id}`, 200)
      return ((await shown.json()) as { readonly state: string }).state === 'complete'
    },
    { message: 'the export is complete' },
  )
  await (await ask(`/v1/exports/${id}/file`, 200)).arrayBuffer()
  const laterNs = BigInt(Date.now() + HOUR_MS) * 1_000_000n
  await ask(`/v1/exports?TSBegin=${BEGIN_NS}&TSEnd=${laterNs}`, 202, 'POST')
}

async function textOf(url: string, headers: Readonly<Record<string, string>> = {}): Promise<string> {
  const answer = await fetch(`${url}/metrics`, { headers })
  assert.equal(answer.status, 200)
  return await answer.text()
}
