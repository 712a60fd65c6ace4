// `capfleet export` against a real gateway with a worker.
import assert from 'node:assert/strict'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import {
  gatewayEnvironment,
  hostedClient,
  type TempClient,
} from '../../../../support/processes/client-process.ts'
import {
  SMALL_FLEET_START_NS,
  type SmallFleet,
  startSmallFleet,
} from '../../../../support/processes/small-fleet.ts'
import { startTempWorker } from '../../../../support/processes/temp-worker.ts'
import { USER_PASSWORD } from '../../../../support/suite-secrets.ts'

const RANGE = [
  '--begin',
  String(SMALL_FLEET_START_NS),
  '--end',
  String(SMALL_FLEET_START_NS + 1_000_000_000n),
]

describe('capfleet export', () => {
  const parts = new AsyncDisposableStack()
  let fleet: SmallFleet
  let client: TempClient

  before(async () => {
    fleet = parts.use(await startSmallFleet())
    client = parts.use(await hostedClient())
    parts.use(await startTempWorker(fleet.gateway))
  })
  after(() => parts.disposeAsync())

  const run = (...args: readonly string[]) =>
    client.run(['export', ...args], {
      environment: gatewayEnvironment(fleet.gateway.url, 'user', USER_PASSWORD),
    })

  test('an order prints its id, is followed to its end, listed and shown', async () => {
    const ordered = await run('create', ...RANGE, '--reason', 'ticket 7', '--watch')
    assert.equal(ordered.status, 0, ordered.stderr)
    const id = ordered.stdout.toString().trim()
    assert.match(ordered.stderr, new RegExp(`^export ${id}: complete, 1 file, 7\\.52 KiB$`, 'm'))
    const listed = await run('list')
    assert.match(listed.stdout.toString(), new RegExp(`^${id} +complete +100% .* ticket 7$`, 'm'))
    const shown = await run('show', id)
    assert.match(shown.stdout.toString(), /^devices +east=complete west=complete$/m)
    const again = await run('watch', id)
    assert.deepEqual([again.status, again.stdout.length], [0, 0], again.stderr)
    const kept = await run('list', '--state', 'failed', '-o', 'jsonl')
    assert.deepEqual([kept.status, kept.stdout.toString()], [0, ''])
  })

  test('its files come as the download would be, in parts of a time, with the manifest', async () => {
    const half = ['--part-time', '1s', '--device', 'east']
    const id = (await run('create', ...RANGE, ...half, '--watch')).stdout.toString().trim()
    const got = await run('get', id, '--folder', 'files')
    assert.equal(got.status, 0, got.stderr)
    const names = await readdir(join(client.folder, 'files'))
    assert.deepEqual(names.length, 2, names.join())
    const range = `TSBegin=${SMALL_FLEET_START_NS}&TSEnd=${SMALL_FLEET_START_NS + 1_000_000_000n}&Device=east`
    const answer = await fetch(`${fleet.gateway.url}/api/v1/pcap/timerange?${range}`, {
      headers: fleet.gateway.as.user,
    })
    const [name = ''] = names.filter((one) => one.endsWith('.pcap'))
    const file = await readFile(join(client.folder, 'files', name))
    assert.ok(file.equals(Buffer.from(await answer.arrayBuffer())))
    const manifest = await readFile(join(client.folder, 'files', `${id}.manifest.json`), 'utf8')
    assert.equal((JSON.parse(manifest) as { id: string }).id, id)
  })

  test('a cancelled one is gone', async () => {
    const id = (await run('create', 'east-first')).stdout.toString().trim()
    const cancelled = await run('cancel', id)
    assert.equal(cancelled.status, 0, cancelled.stderr)
    assert.match(cancelled.stderr, new RegExp(`^export ${id}: was \\w+$`, 'm'))
  })

  test('a schedule is made, listed and removed', async () => {
    const made = await run(
      'schedule',
      'create',
      '--cron',
      '5 4 * * *',
      '--cron-zone',
      'UTC',
      '--last',
      '1d',
      '-d',
      'east',
    )
    assert.equal(made.status, 0, made.stderr)
    const id = made.stdout.toString().trim()
    const listed = await run('schedule', 'list')
    assert.match(
      listed.stdout.toString(),
      new RegExp(`^${id} +5 4 \\* \\* \\* +UTC +\\d{4}-\\d\\d-\\d\\d 04:05:00Z `, 'm'),
    )
    assert.equal((await run('schedule', 'remove', id)).status, 0)
    assert.equal((await run('schedule', 'remove', id)).status, 4)
    const wrong = await run('schedule', 'create', '--cron', 'daily', '--last', '1d')
    assert.equal(wrong.status, 2)
    assert.match(wrong.stderr, /--cron .*\[bad-parameter\]/)
  })

  test('mistakes in an order are reported before anything is ordered', async () => {
    const filter = await run('create', ...RANGE, '--bpf', 'tcp prot 1')
    assert.deepEqual([filter.status, filter.stdout.length], [2, 0])
    assert.match(filter.stderr, /--bpf .*\[bad-bpf\]/)
    const time = await run('create', ...RANGE, '--part-time', 'soon')
    assert.equal(time.status, 2)
    assert.match(time.stderr, /--part-time .*\[bad-parameter\]/)
    assert.equal((await run('show', 'nothing')).status, 4)
  })
})
