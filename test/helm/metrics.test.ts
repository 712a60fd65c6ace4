// The /metrics of the programs: in the format of Prometheus, and not too large.
import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import { FakeDevice } from '../support/devices/fake-device.ts'
import { FaultProxy } from '../support/devices/fault-proxy.ts'
import { type MetricTexts, metricTexts, UNTOLD } from '../support/documents/metric-texts.ts'
import { eventually } from '../support/eventually.ts'
import { NO_PROMTOOL, promtool } from '../support/helm/promtool.ts'
import { startTempGateway } from '../support/processes/temp-gateway.ts'
import { TempRedis } from '../support/processes/temp-redis.ts'

const PROGRAMS = ['gateway', 'worker', 'appliance'] as const

let texts: MetricTexts
before(async () => {
  texts = await metricTexts()
})

describe('promtool', { skip: NO_PROMTOOL }, () => {
  for (const program of PROGRAMS) {
    test(`finds nothing in the metrics of the ${program}`, () => {
      const { status, said } = promtool(['check', 'metrics'], { input: texts[program] })
      assert.equal(said, '')
      assert.equal(status, 0)
    })
  }

  test('would find a counter without _total and a unit that is no base unit', () => {
    const metric = (name: string, type: string) => `# HELP ${name} Waits\n# TYPE ${name} ${type}\n${name} 1\n`
    const wrong = metric('waits', 'counter') + metric('wait_minutes', 'gauge')
    const { status, said } = promtool(['check', 'metrics'], { input: wrong })
    assert.notEqual(status, 0)
    assert.match(said, /waits counter metrics should have "_total" suffix/)
    assert.match(said, /wait_minutes use base unit "seconds"/)
  })
})

test('captures, users and filters are in no metric', () => {
  for (const program of PROGRAMS) {
    for (const untold of Object.values(UNTOLD)) {
      const label = new RegExp(`="[^"]*${untold}[^"]*"`)
      assert.doesNotMatch(texts[program], label, `${untold} at the ${program}`)
    }
  }
})

test('what happened is counted', () => {
  const line = (program: (typeof PROGRAMS)[number], text: string) =>
    assert.ok(texts[program].includes(`\ncapfleet_${text}`), `${text} of the ${program}`)
  line('gateway', 'downloads_total{outcome="complete",kind="relay"} 1\n')
  line('gateway', 'downloads_running 0\n')
  line('gateway', 'http_problems_total{code="bad-parameter"} 1\n')
  line('gateway', 'http_problems_total{code="queue-timeout"} 0\n')
  line('gateway', 'control_calls_total{device="east",result="ok"}')
  line('gateway', 'device_capture_dropped_packets_total{device="east"} 0\n')
  line('gateway', 'device_capture_failing{device="east"} 0\n')
  line('gateway', 'exports{state="paused"} 0\n')
  line('gateway', 'export_workers 1\n')
  line('gateway', 'leases{state="held"} 0\n')
  assert.match(texts.gateway, /^capfleet_redis_round_trip_seconds \d/m)
  assert.match(texts.gateway, /^capfleet_export_file_bytes_total [1-9]\d+$/m)
  line('worker', 'exports_ended_total{state="complete"} 1\n')
  line('worker', 'export_spans_total{outcome="fetched"} 1\n')
  line('worker', 'export_free_bytes{place="spool"}')
  line('worker', 'export_free_bytes{place="target:local"}')
  line('appliance', 'capture_failing 0\n')
  line('appliance', 'disk_free_bytes{mount="Store0"}')
  line('appliance', 'capture_dropped_packets_total{port="cap0",cause="ring"} 0\n')
})

const DEVICES = 500
/** Of them; the others would have the same series. */
const REAL_DEVICES = 50
const SERIES_MAX = 10_000
/** Metrics that each probed and called device has. */
const KINDS_MIN = 17
const OF_DEVICE = /device="rack-\d+"/

test(`a gateway with ${DEVICES} devices has ${SERIES_MAX} series at most`, async (t) => {
  await using redis = await TempRedis.create()
  await using device = await FakeDevice.start('fake', Buffer.alloc(0))
  device.answers.set('/api/v1/system/status', {
    cat: { cat_EnableCnt: 1 },
    capture: { CaptureState: 'running', CaptureDrop: 0 },
  })
  const names = Array.from({ length: REAL_DEVICES }, (_, at) => `rack-${at}`)
  // All of them are this one appliance: two devices cannot share a URL.
  await using ways = new AsyncDisposableStack()
  const { hostname: host, port } = new URL(device.config.url)
  const devices = await Promise.all(
    names.map(async (name) => {
      const way = ways.use(await FaultProxy.start({ host, port: Number(port) }))
      return {
        config: { ...device.config, name, url: `http://127.0.0.1:${way.port}` },
        password: device.password,
      }
    }),
  )
  await using gateway = await startTempGateway(devices, redis.url, { health: { intervalS: 600 } })
  const told = async () => {
    const answer = await fetch(`${gateway.url}/metrics`, { headers: gateway.as.viewer })
    return (await answer.text()).split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  }
  for (const name of names) {
    const path = `${gateway.url}/devices/${name}/api/v1/system/version`
    await (await fetch(path, { headers: gateway.as.viewer })).arrayBuffer()
  }
  const kinds = (lines: readonly string[]) =>
    new Set(lines.map((line) => line.replace(OF_DEVICE, '').split(' ')[0]))
  let lines: readonly string[] = []
  await eventually(
    async () => {
      lines = (await told()).filter((line) => OF_DEVICE.test(line))
      return kinds(lines).size >= KINDS_MIN
    },
    { message: 'devices were probed' },
  )
  const others = (await told()).length - lines.length
  const most = kinds(lines).size * DEVICES + others
  t.diagnostic(`${kinds(lines).size} series of each device, ${others} others: ${most}`)
  assert.ok(lines.length > REAL_DEVICES)
  assert.ok(most <= SERIES_MAX, `${most} series`)
})
