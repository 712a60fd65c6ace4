import assert from 'node:assert/strict'
import { rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { EventLog } from '../../../appliance/events/event-log.ts'
import { hideStorePath, withoutStorePath } from '../../../appliance/request/hidden-path.ts'
import { CapfleetError } from '../../../src/shared/base/error.ts'
import { createLog, type Log } from '../../../src/shared/base/log.ts'
import { EventStream } from '../../support/clients/event-stream.ts'
import { makePacket, makePcap } from '../../support/packets/packet-maker.ts'
import { startTempAppliance, type TempAppliance } from '../../support/processes/temp-appliance.ts'

describe('a text', () => {
  const STORE = '/var/lib/cap.fleet'
  for (const [text, shown] of [
    [
      `cannot read ${STORE}/captures/a/cap0/00000001.pcap: gone`,
      'cannot read captures/a/cap0/00000001.pcap: gone',
    ],
    [`stat '${STORE}/captures'`, "stat 'captures'"],
    [
      `no recorder runs for the store ${STORE}; start`,
      'no recorder runs for the store (its path is in the log); start',
    ],
    [`the store ${STORE}`, 'the store (its path is in the log)'],
    [`${STORE}/a and ${STORE}/b`, 'a and b'],
    ['/var/lib/cap.fleet2/x and /var/lib/capXfleet/x', '/var/lib/cap.fleet2/x and /var/lib/capXfleet/x'],
    ['nothing', 'nothing'],
  ] as const) {
    test(`"${text}" is shown as "${shown}"`, () => assert.equal(withoutStorePath(text, STORE), shown))
  }
})

test('the log has an error as it was, with the id of the request', async () => {
  const logged: unknown[] = []
  const log = { warn: (event, fields) => void logged.push([event, fields]) } as Partial<Log> as Log
  const hide = hideStorePath('/s', log)
  const original = new CapfleetError('store-corrupt', '/s/a.idx: torn', { param: 'StreamName' })
  const context = { state: { requestId: 'r-1' } } as Parameters<typeof hide>[0]
  await assert.rejects(hide(context, () => Promise.reject(original)) as Promise<unknown>, (error) => {
    assert.ok(error instanceof CapfleetError)
    assert.deepEqual(
      [error.code, error.message, error.details.param],
      ['store-corrupt', 'a.idx: torn', 'StreamName'],
    )
    return true
  })
  assert.deepEqual(logged, [
    ['http.error-with-path', { requestId: 'r-1', code: 'store-corrupt', message: '/s/a.idx: torn' }],
  ])
})

describe('a caller does not learn the path of the store', () => {
  async function withCapture(): Promise<TempAppliance> {
    const appliance = await startTempAppliance()
    const path = join(appliance.folder, 'a.pcap')
    const packets = Array.from({ length: 3 }, (_, i) =>
      makePacket(1_790_000_000_000_000_000n + BigInt(i), 'x', 100),
    )
    await writeFile(path, makePcap(packets))
    await appliance.importFiles('a', path)
    return appliance
  }

  async function assertHidden(appliance: TempAppliance, path: string, status: number): Promise<string> {
    const answer = await appliance.get(path)
    const text = answer.body.toString()
    assert.equal(answer.status, status, text)
    assert.ok(!text.includes(appliance.folder), text)
    return String(answer.json().detail)
  }

  test('when no recorder runs', async () => {
    await using appliance = await withCapture()
    await appliance.stopRecorder()
    for (const path of ['/sysmaster/capture_status', '/sysmaster/capture_start', '/pcap/del?StreamName=a']) {
      assert.match(await assertHidden(appliance, path, 503), /no recorder runs/)
    }
  })

  test('when the store is gone', async () => {
    await using appliance = await withCapture()
    await rename(join(appliance.storePath, 'captures'), join(appliance.folder, 'elsewhere'))
    for (const path of [
      '/stream/list',
      '/api/v1/pcap/single?StreamName=a',
      '/stream/stime?StreamName=a&StreamView=split_1sec',
    ]) {
      assert.match(await assertHidden(appliance, path, 503), /cannot be read/)
    }
  })

  test('when the folder of a capture is not one', async () => {
    await using appliance = await withCapture()
    const port = join(appliance.storePath, 'captures', 'a', 'cap0', '00000')
    await rm(port, { recursive: true })
    await writeFile(port, '')
    await assertHidden(appliance, '/api/v1/pcap/single?StreamName=a', 503)
  })

  test('by an event about the disk', async () => {
    await using appliance = await withCapture()
    await appliance.stopRecorder()
    await using events = new EventLog(appliance.storePath, { log: createLog('test', 'silent') })
    using stream = new EventStream(await appliance.open('/api/v1/system/events'))
    const file = join(appliance.storePath, 'captures', 'a', 'cap0', '00000', '00000001.pcap')
    events.append('disk-error', { name: 'a', message: `cannot write ${file}: no space left` })
    const event = await stream.next()
    assert.equal(event?.data.message, 'cannot write captures/a/cap0/00000/00000001.pcap: no space left')
  })
})
