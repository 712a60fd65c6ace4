// /sysmaster/capture_start, capture_stop, capture_status and the schedule, over HTTP.
import assert from 'node:assert/strict'
import { after, before, beforeEach, test } from 'node:test'
import { eventually } from '../../support/eventually.ts'
import { startTempAppliance, type TempAppliance } from '../../support/processes/temp-appliance.ts'

const START = '/sysmaster/capture_start'
const STOP = '/sysmaster/capture_stop'
const STATUS = '/sysmaster/capture_status'
let appliance: TempAppliance

before(async () => {
  appliance = await startTempAppliance({ config: { capture: { defaultName: 'standard' } } })
})
after(() => appliance[Symbol.asyncDispose]())
beforeEach(async () => {
  await appliance.get(STOP)
})

const json = async (path: string): Promise<Record<string, unknown>> => (await appliance.get(path)).json()
const CTIME = String.raw`\[\w{3} \w{3} [ \d]\d \d\d:\d\d:\d\d \d{4}\]`

test('start and stop answer with the phrases that playbooks match', async () => {
  const started = await json(`${START}?StreamName=trade`)
  assert.deepEqual(Object.keys(started), ['Status', 'Str', 'StreamName', 'StartTS', 'State', 'Warning'])
  assert.match(String(started.Str), new RegExp(`^${CTIME} successfully started capture \\[trade\\]$`))
  assert.match(String(started.StreamName), /^trade_\d{8}_\d{4}$/)
  assert.match(String(started.StartTS), /^\d{19}$/)
  assert.deepEqual([started.Status, started.State], [true, 'running'])
  assert.match(String(started.Warning), /no capture port/)
  const stopped = await json(STOP)
  assert.match(String(stopped.Str), new RegExp(`^${CTIME} successfully stopped capture \\[trade\\]$`))
  assert.deepEqual(
    [stopped.Status, stopped.StreamName, stopped.State, stopped.CapturePacket, stopped.CaptureByte],
    [true, started.StreamName, 'idle', 0, 0],
  )
  assert.ok(BigInt(String(stopped.StopTS)) > BigInt(String(started.StartTS)))
})

test('conflicts are 409 with Status false', async () => {
  const notRunning = await appliance.get(STOP)
  assert.equal(notRunning.status, 409)
  assert.deepEqual([notRunning.json().code, notRunning.json().Status], ['capture-not-running', false])
  const { StreamName } = await json(`${START}?StreamName=a`)
  const running = await appliance.get(`${START}?StreamName=b`)
  assert.equal(running.status, 409)
  assert.deepEqual([running.json().code, running.json().StreamName], ['capture-running', StreamName])
})

test('a store without room refuses a start, and reports why until a stop', async () => {
  const retention = { maxBytes: 0, minFreeBytes: 1e14, maxAgeMs: 0, onFull: 'stop', pinMs: 0 } as const
  await using full = await startTempAppliance({ retention })
  const refused = await full.get(START)
  assert.deepEqual(
    [refused.status, refused.json().code, refused.json().Status],
    [507, 'store-full', false],
    refused.body.toString(),
  )
  const status = async () => (await full.get(STATUS)).json()
  const { State, Message } = await status()
  assert.equal(State, 'error')
  assert.match(
    String(Message),
    /^the store has no room left within retention\.maxBytes and .*; delete captures, /,
  )
  const isFailing = async () =>
    /^capfleet_capture_failing 1$/m.test((await full.get('/metrics')).body.toString())
  await eventually(isFailing, { message: 'the metric says so' })
  assert.equal((await full.get(STOP)).status, 409)
  assert.equal((await status()).State, 'idle')
})

test('two starts at once: one capture', async () => {
  const answers = await Promise.all(['a', 'b'].map((name) => appliance.get(`${START}?StreamName=${name}`)))
  assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 409])
})

test('without a name the configured one is used; bad names are refused', async () => {
  assert.match(String((await json(START)).StreamName), /^standard_\d{8}_\d{4}/)
  await appliance.get(STOP)
  // An unset variable in a script does not mean the default.
  for (const name of ['', '..', 'a%2Fb', '%00', 'a%20b', 'x'.repeat(65)]) {
    const answer = await appliance.get(`${START}?StreamName=${name}`)
    assert.deepEqual([answer.status, answer.json().param], [400, 'StreamName'], name)
  }
})

test('a second start in the same minute gets the second', async () => {
  const names = new Set<string>()
  for (let round = 0; round < 3; round++) {
    names.add(String((await json(`${START}?StreamName=again`)).StreamName))
    await appliance.get(STOP)
  }
  assert.equal(names.size, 3)
  for (const name of names) assert.match(name, /^again_\d{8}_\d{4}(_\d{2}(_\d+)?)?$/)
})

test('capture_status reports the state with the types that scripts compare', async () => {
  const idle = await json(STATUS)
  assert.deepEqual(
    [idle.Status, idle.GUIMode, idle.StreamName, idle.CaptureEnable, idle.State],
    [true, 'full', '', 'false', 'idle'],
  )
  const { StreamName, StartTS } = await json(`${START}?StreamName=trade`)
  const running = await json(STATUS)
  assert.deepEqual(
    [running.StreamName, running.CaptureName, running.CaptureEnable, running.State, running.StartTS],
    [StreamName, 'trade', 'true', 'running', StartTS],
  )
  assert.deepEqual([running.Scheduled, running.ScheduleName], [false, ''])
  for (const name of ['CaptureTime', 'CaptureBps', 'CapturePps', 'SlotsTotal', 'SlotsUsed']) {
    assert.equal(typeof running[name], 'number', name)
  }
  for (const name of ['CaptureByte', 'CapturePacket', 'CaptureDrop', 'CaptureFCSError']) {
    assert.ok(Number.isInteger(running[name]), name)
  }
  for (const name of ['LastPacketTS', 'FlushedTS']) assert.match(String(running[name]), /^\d+$/)
  assert.match(String(running.CurrentTime), new RegExp(`^${CTIME.replaceAll(/\\[[\]]/g, '')}$`))
})

test('the active capture is listed, shown in the status, downloadable, and not deletable', async () => {
  const { StreamName: name } = await json(`${START}?StreamName=shown`)
  const item = async (): Promise<Record<string, unknown> | undefined> =>
    ((await json('/stream/list')).List as Record<string, unknown>[]).find(({ Path }) => Path === name)
  assert.deepEqual([(await item())?.IsActive, (await item())?.State], [true, 'active'])
  const { capture } = (await json('/api/v1/system/status')) as Record<string, Record<string, unknown>>
  assert.deepEqual([capture?.CaptureEnb, capture?.CaptureName], [true, name])
  const download = await appliance.get('/api/v1/pcap/single?StreamName=shown')
  assert.deepEqual([download.status, download.body.length], [200, 24])
  const deletion = await appliance.get(`/pcap/del?StreamName=${name}&Force=1`)
  assert.deepEqual([deletion.status, deletion.json().code], [409, 'capture-active'])
  await assert.rejects(appliance.recorder.deleteCapture(String(name)), { code: 'capture-active' })
  await appliance.get(STOP)
  assert.deepEqual([(await item())?.IsActive, (await item())?.State], [false, 'closed'])
  assert.equal((await appliance.get(`/pcap/del?StreamName=${name}`)).status, 200)
})

test('a recorder that restarts continues the capture', async () => {
  const { StreamName, StartTS } = await json(`${START}?StreamName=kept`)
  await appliance.stopRecorder()
  const away = await appliance.get(STATUS)
  assert.deepEqual([away.status, away.json().code], [503, 'store-unavailable'])
  assert.equal((await appliance.get(STOP)).status, 503)
  await appliance.startRecorder()
  const back = await json(STATUS)
  assert.deepEqual([back.StreamName, back.StartTS, back.CaptureEnable], [StreamName, StartTS, 'true'])
  assert.equal((await json(STOP)).StreamName, StreamName)
})

test('only the role full may start and stop, and no page of another site', async () => {
  for (const path of [START, STOP]) {
    const asUser = await appliance.get(path, { user: appliance.credentials('user') })
    assert.equal(asUser.status, 403)
    const crossSite = await appliance.get(path, { headers: { 'Sec-Fetch-Site': 'cross-site' } })
    assert.deepEqual([crossSite.status, crossSite.json().code], [403, 'cross-site'])
    assert.equal((await appliance.get(path, { method: 'HEAD' })).status, 405)
  }
  assert.equal((await json(STATUS)).State, 'idle')
})

test('starts and stops by POST, as a gateway does, and takes no body', async () => {
  const started = await appliance.get(`${START}?StreamName=posted`, { method: 'POST' })
  assert.deepEqual([started.status, started.json().State], [200, 'running'])
  const headers = { 'Content-Length': '8' }
  const withBody = await appliance.get(STOP, { method: 'POST', headers })
  assert.deepEqual([withBody.status, withBody.json().code], [400, 'bad-parameter'])
  const stopped = await appliance.get(STOP, { method: 'POST' })
  assert.deepEqual([stopped.status, stopped.json().StreamName], [200, started.json().StreamName])
})

test('Until takes next only', async () => {
  const answer = await appliance.get(`${STOP}?Until=tomorrow`)
  assert.deepEqual([answer.status, answer.json().param], [400, 'Until'])
})

test('the schedule is that of the configuration', async () => {
  assert.deepEqual(await json('/api/v1/capture/schedule'), { List: [] })
})

test('the CSV and the summary follow the capture', async () => {
  const { StreamName } = await json(`${START}?StreamName=csv`)
  const { body, headers } = await appliance.get('/sysmaster/status')
  assert.match(String(headers['content-type']), /^text\/csv/)
  const rows = new Map(
    body
      .toString()
      .trimEnd()
      .split('\n')
      .map((line) => {
        const [, key = '', value = ''] = /^([a-z_0-9]+), *(.*)$/.exec(line) ?? []
        return [key, value]
      }),
  )
  assert.deepEqual([...rows.keys()].slice(0, 15), [
    'uptime',
    'uptime_s',
    'packets_received',
    'packets_dropped',
    'packets_errors',
    'packets_captured',
    'bytes_captured',
    'bytes_pending',
    'bytes_disk',
    'bytes_overflow',
    'bytes_overflow_now',
    'capture0_link',
    'capture0_link_uptime',
    'capture0_link_uptime_s',
    'capture0_link_speed',
  ])
  assert.equal(rows.size, 11 + 8 * 4 + 6)
  assert.deepEqual([rows.get('capture_name'), rows.get('capture_active')], [StreamName, 'true'])
  assert.equal(rows.get('capture7_link'), 'down')
  assert.match(rows.get('uptime') ?? '', /^\d+D \d+H \d+M$/)
  assert.ok(Number(rows.get('uptime_s')) > 0)
  for (const line of body.toString().trimEnd().split('\n')) {
    assert.match(line, /^[a-z_0-9]+,.{24}$/, 'scripts cut by column')
  }
  assert.ok(body.toString().endsWith('\ncapture_active,                    true\n'))
  const withHeader = (await appliance.get('/sysmaster/status?Header=1')).body.toString().split('\n')
  assert.match(withHeader[0] ?? '', /^key, +value$/)
  await appliance.get(STOP)
  await eventually(
    async () => /capture_active, +false/.test((await appliance.get('/sysmaster/status')).body.toString()),
    { message: 'the capture is over' },
  )
})

test('the list of captures continues paging after one that runs, has ended or was deleted', async () => {
  const first = String((await json(`${START}?StreamName=paged`)).StreamName)
  await json(STOP)
  const runs = String((await json(`${START}?StreamName=paged-later`)).StreamName)
  const page = async (query: string): Promise<string[]> =>
    ((await json(`/stream/list?Limit=1${query}`)).List as { StreamName: string }[]).map(
      ({ StreamName }) => StreamName,
    )
  const behind = async (): Promise<string[]> => await page(`&After=${runs}`)
  assert.deepEqual(await page(''), [runs])
  assert.deepEqual(await behind(), [first])
  await json(STOP)
  assert.deepEqual(await behind(), [first])
  assert.equal((await appliance.get(`/pcap/del?StreamName=${runs}`)).status, 200)
  assert.deepEqual(await behind(), [first])
  assert.equal((await appliance.get('/stream/list?After=never-there')).status, 404)
})
