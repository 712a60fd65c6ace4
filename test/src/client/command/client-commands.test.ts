// The commands that ask a gateway, as a user runs them, with a real gateway over two appliances.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { chmod, readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { readPcap } from '../../../support/packets/pcap-records.ts'
import {
  type ClientEnd,
  gatewayEnvironment,
  hostedClient,
  type TempClient,
} from '../../../support/processes/client-process.ts'
import { shellPipeline } from '../../../support/processes/shell-pipeline.ts'
import {
  SMALL_FLEET_START_NS,
  type SmallFleet,
  startSmallFleet,
} from '../../../support/processes/small-fleet.ts'
import { REPOSITORY_ROOT } from '../../../support/repository-files.ts'
import { USER_PASSWORD } from '../../../support/suite-secrets.ts'

const RANGE = [
  '--begin',
  String(SMALL_FLEET_START_NS),
  '--end',
  String(SMALL_FLEET_START_NS + 1_000_000_000n),
]

describe('the command line', () => {
  const parts = new AsyncDisposableStack()
  let fleet: SmallFleet
  let client: TempClient

  before(async () => {
    fleet = parts.use(await startSmallFleet())
    client = parts.use(await hostedClient())
  })
  after(() => parts.disposeAsync())

  const as = (user: string) => ({ environment: gatewayEnvironment(fleet.gateway.url, user, USER_PASSWORD) })
  const run = (args: readonly string[], user = 'full'): Promise<ClientEnd> => client.run(args, as(user))
  const well = async (args: readonly string[], user?: string): Promise<string> => {
    const { status, stdout, stderr } = await run(args, user)
    assert.equal(status, 0, stderr)
    return stdout.toString()
  }
  const contextsPath = () => join(client.home, 'capfleet', 'config.yaml')

  describe('login', () => {
    test('keeps what the gateway accepts, unreadable for other users', async () => {
      const { url } = fleet.gateway
      const login = ['login', url, '--user', 'user', '--name', 'lab']
      const { status, stderr } = await client.run(login, { input: `${USER_PASSWORD}\n` })
      assert.equal(status, 0, stderr)
      const [file, folder] = await Promise.all([stat(contextsPath()), stat(join(client.home, 'capfleet'))])
      assert.deepEqual([file.mode & 0o777, folder.mode & 0o777], [0o600, 0o700])
      assert.match((await client.run(['devices'])).stdout.toString(), /^east /m)
      assert.match((await client.run(['context', 'list'])).stdout.toString(), /^\* +lab +http:\S+ +user$/m)
      assert.ok(!(await client.run(['context', 'list', '-o', 'json'])).stdout.includes(USER_PASSWORD))
    })

    test('keeps nothing that the gateway refuses', async () => {
      const before = await readFile(contextsPath(), 'utf8')
      const file = join(client.folder, 'password')
      await writeFile(file, 'wrong\n')
      const refused = await client.run([
        'login',
        fleet.gateway.url,
        '--user',
        'user',
        '--password-file',
        file,
      ])
      assert.equal(refused.status, 3, refused.stderr)
      assert.equal(await readFile(contextsPath(), 'utf8'), before)
    })

    test('and contexts are chosen, and removed', async () => {
      const second = ['login', fleet.gateway.url, '--user', 'viewer', '--name', 'second']
      assert.equal((await client.run(second, { input: USER_PASSWORD })).status, 0)
      assert.equal((await client.run(['context', 'use', 'lab'])).status, 0)
      assert.match((await client.run(['context', 'list'])).stdout.toString(), /^\* +lab/m)
      const refused = await client.run(['get', 'east-first', '--context', 'second'])
      assert.equal(refused.status, 3, refused.stderr)
      assert.equal((await client.run(['context', 'remove', 'second'])).status, 0)
      assert.equal((await client.run(['context', 'use', 'lab'])).status, 0)
      assert.equal((await client.run([...second, '--name', 'third'], { input: USER_PASSWORD })).status, 0)
      assert.equal((await client.run(['context', 'remove', 'third'])).status, 0)
      const none = await client.run(['devices'])
      assert.equal(none.status, 2)
      assert.match(none.stderr, /no gateway is selected; select one with capfleet context use NAME: lab$/m)
      assert.equal((await client.run(['context', 'use', 'lab'])).status, 0)
      const unknown = await client.run(['devices', '--context', 'second'])
      assert.equal(unknown.status, 2)
      assert.match(unknown.stderr, /no context is named "second"; known contexts: lab/)
    })

    test('a file that others may read is not used', async () => {
      await chmod(contextsPath(), 0o644)
      const refused = await client.run(['devices'])
      await chmod(contextsPath(), 0o600)
      assert.equal(refused.status, 3)
      assert.match(refused.stderr, /run: chmod 600/)
    })

    test("a context's password goes to no other address", async () => {
      const environment = { CAPFLEET_URL: 'http://127.0.0.1:9' }
      const refused = await client.run(['devices'], { environment })
      assert.equal(refused.status, 2)
      assert.match(
        refused.stderr,
        /CAPFLEET_URL also needs CAPFLEET_TOKEN, or CAPFLEET_USER and CAPFLEET_PASSWORD/,
      )
    })
  })

  describe('lists', () => {
    test('as a table, as lines of JSON, as CSV, and as the gateway gave them', async () => {
      assert.match(await well(['captures']), /^DEVICE +CAPTURE .*\neast +east-first /)
      const lines = (await well(['captures', '-o', 'jsonl'])).trimEnd().split('\n')
      assert.deepEqual(
        lines.map((line) => (JSON.parse(line) as { StreamName: string }).StreamName),
        ['east-first', 'east-second', 'west-first', 'west-second'],
      )
      const csv = await well(['captures', '-o', 'csv', '--device', 'west'])
      assert.match(csv, /^device,capture,begin,end,.*\nwest,west-first,1790000000000000000,/)
      const given = await fetch(`${fleet.gateway.url}/stream/list`, { headers: fleet.gateway.as.full })
      assert.equal(await well(['captures', '-o', 'json']), `${await given.text()}\n`)
    })

    test('end quietly when their output is closed', async () => {
      const program = `${process.execPath} ${REPOSITORY_ROOT}src/cli.ts captures -o json`
      const { stderr } = await shellPipeline(`${program} | true`, as('full').environment)
      assert.match(stderr, /^codes: 7 0\n$/)
    })

    test('8: go to a disk that is full', async () => {
      const program = `${process.execPath} ${REPOSITORY_ROOT}src/cli.ts captures`
      const { stderr } = await shellPipeline(`${program} > /dev/full`, as('full').environment)
      assert.match(stderr, /^capfleet: standard output: ENOSPC: [^\n]*\ncodes: 8\n$/)
    })

    test('of captures take times in any form, and reject others with the name of the flag', async () => {
      const listed = async (...args: readonly string[]) => await well(['captures', '-o', 'csv', ...args])
      assert.match(
        await listed('--from', '2026-09-21', '--to', '2026-09-22T00:00:00+02:00'),
        /^east,east-first/m,
      )
      assert.match(await listed('--from', '1790000000'), /^east,east-first/m)
      assert.doesNotMatch(await listed('--from', '2026-09-22', '--to', 'now'), /east-first/)
      assert.doesNotMatch(await listed('--to', '2026-09-21'), /east-first/)
      const refused = await run(['captures', '--from', 'soon'])
      assert.equal(refused.status, 2)
      assert.match(refused.stderr, /^capfleet: --from "soon" is not in a form that is understood/m)
    })

    test('a page says how to continue', async () => {
      const { stderr } = await run(['captures', '--limit', '1'])
      const [, after = ''] = /there are more; --after (\S+)/.exec(stderr) ?? []
      assert.match(await well(['captures', '--limit', '1', '--after', after]), /east-second/)
    })
  })

  test('errors about times name the flags of the user, not parameters of the API', async () => {
    for (const [args, message] of [
      [['--begin', '-1h'], /^capfleet: --end is missing; add --end, such as --end now \[bad-parameter\]$/m],
      [
        ['--begin', '2/11/2026', '--end', 'now'],
        /^capfleet: --begin "2\/11\/2026" has a date whose day and month/m,
      ],
      [
        ['--begin', '202611020901', '--end', 'now'],
        /^capfleet: --begin .* outside of 1990 to 2106; give --unit, or/m,
      ],
      [['--begin', 'now', '--end', '-1h'], /^capfleet: --begin \([\d-]+T[\d:.]+Z\) is later than --end/m],
    ] as const) {
      const { status, stderr } = await run(['estimate', ...args])
      assert.equal(status, 2)
      assert.match(stderr, message)
    }
  })

  test('the audit is listed, and the link of the page is printed', async () => {
    const listed = await well(['audit', 'list', '--limit', '5', '--from', 'now-1h', '-o', 'jsonl'], 'admin')
    assert.ok(listed.trim().split('\n').length <= 5)
    for (const line of listed.trim().split('\n')) assert.match(line, /"event":"[a-z.]+"/)
    const address = `${fleet.gateway.url}/#/`
    assert.equal(await well(['open']), `${address}fleet\n`)
    assert.equal(
      await well(['open', '--begin', '-1h', '--end', 'now', '-d', 'east', '--bpf', 'udp port 53']),
      `${address}timeline?Device=east&TSBegin=-1h&TSEnd=now&FilterBPF=udp%20port%2053\n`,
    )
    assert.equal((await run(['open', 'nothing'])).status, 2)
  })

  test('a capture is started and stopped on the devices that are named, and no others', async () => {
    const refused = await run(['start', 'incident'])
    assert.equal(refused.status, 2)
    assert.match(refused.stderr, /--device .*\[bad-parameter\]$/m)
    assert.match(
      await well(['start', 'incident', '--device', 'east']),
      /^east +incident_\d{8}_\d{4} +running/m,
    )
    assert.match(await well(['status']), /^east +running +incident.*\nwest +idle/m)
    const again = await run(['start', 'incident', '-d', '*'])
    assert.equal(again.status, 2)
    assert.match(again.stdout.toString(), /^east .* is running; stop it first\nwest +incident_\S+ +running/m)
    assert.match(again.stderr, /^capfleet: east: .*\[capture-running\]$/m)
    const alone = await run(['start', 'incident', '-d', 'east'])
    assert.equal(alone.status, 2)
    assert.match(
      alone.stderr,
      /^capfleet: east: incident_\S+ is running; stop it first \[capture-running\]$/m,
    )
    assert.match(await well(['stop', '-d', '*']), /^east .* idle .*\nwest .* idle /ms)
    const stopped = await run(['stop', '-d', 'west'])
    assert.match(stopped.stderr, /^capfleet: west: .* \[capture-not-running\]$/m)
    const neither = await run(['stop', '-d', '*'])
    assert.match(neither.stderr, /^capfleet: east, west: .* \[capture-not-running\]$/m)
    assert.match(await well(['status', '-o', 'csv']), /^east,idle,.*\nwest,idle,/m)
  })

  test('an estimate sums up, and reports a bad filter before anything is downloaded', async () => {
    assert.match(await well(['estimate', ...RANGE]), /^in total: 80 packets, 7\.52 KiB/m)
    const mixed = await run(['estimate', ...RANGE, '--start', '5'])
    assert.equal(mixed.status, 2)
    assert.match(mixed.stderr, /^capfleet: --start and --stop select a part of a capture: name the capture/)
    const refused = await run(['estimate', ...RANGE, '--bpf', 'tcp prot 443'])
    assert.equal(refused.status, 2)
    assert.match(refused.stderr, /--bpf .*\[bad-bpf\]/)
  })

  test('a receipt is found by the beginning of its id, if only one of the own begins so', async () => {
    const path = '/api/v1/pcap/single?StreamName=east-first'
    const answer = await fetch(fleet.gateway.url + path, { headers: fleet.gateway.as.full })
    await answer.arrayBuffer()
    const id = String(answer.headers.get('capfleet-request-id'))
    assert.equal(await well(['receipt', id.slice(0, 13)]), await well(['receipt', id]))
    const others = await run(['receipt', id.slice(0, 13)], 'user')
    assert.equal(others.status, 4)
    assert.match(others.stderr, /no download of yours .* begins with .* \[unknown-request\]$/m)
    const ids = ['6f1c1d1e-0000', '6f1c1d1e-1111', '7a000000-0000'].map(
      (start) => `${start}-4000-8000-000000000000`,
    )
    const gateway = createServer((_req, res) =>
      res.end(JSON.stringify({ requests: ids.map((one) => ({ id: one })) })),
    )
    gateway.listen(0, '127.0.0.1')
    await once(gateway, 'listening')
    const url = `http://127.0.0.1:${(gateway.address() as AddressInfo).port}`
    const environment = gatewayEnvironment(url, 'user', USER_PASSWORD)
    const ambiguous = await client.run(['receipt', '6f1c1d1e'], { environment })
    gateway.close()
    assert.equal(ambiguous.status, 2)
    assert.match(
      ambiguous.stderr,
      new RegExp(`2 of your downloads begin with 6f1c1d1e: ${ids[0]}, ${ids[1]}; give more of the id`),
    )
  })

  test('a request in the queue is cancelled by the beginning of its id, if only one begins so', async () => {
    const ids = ['6f1c1d1e-0000', '6f1c1d1e-1111', '7a000000-0000'].map(
      (start) => `${start}-4000-8000-000000000000`,
    )
    const [first = '', second = '', third = ''] = ids
    // A count of two devices has two rows.
    const rows = [first, second, `${third}.0`, `${third}.1`].map((id) => ({ id, request: id.split('.')[0] }))
    const asked: string[] = []
    const gateway = createServer((req, res) => {
      asked.push(`${req.method} ${req.url}`)
      const cancelled = { id: third, user: 'ann', state: 'streaming' }
      res.end(JSON.stringify(req.method === 'DELETE' ? cancelled : { requests: rows }))
    })
    gateway.listen(0, '127.0.0.1')
    await once(gateway, 'listening')
    const url = `http://127.0.0.1:${(gateway.address() as AddressInfo).port}`
    const environment = gatewayEnvironment(url, 'user', USER_PASSWORD)
    const cancel = (id: string) => client.run(['queue', 'cancel', id], { environment })
    const ambiguous = await cancel('6f1c1d1e')
    assert.equal(ambiguous.status, 2)
    assert.match(
      ambiguous.stderr,
      new RegExp(`2 requests in the queue begin with 6f1c1d1e: ${first}, ${second}; give more of the id`),
    )
    const unknown = await cancel('6f1c1d1f')
    assert.equal(unknown.status, 4)
    assert.match(
      unknown.stderr,
      /no request in the queue has an id that begins with 6f1c1d1f \[unknown-request\]$/m,
    )
    assert.ok(!asked.some((one) => one.startsWith('DELETE')), 'nothing was cancelled')
    for (const id of ['7a00', third, `${third}.1`]) assert.equal((await cancel(id)).status, 0)
    gateway.close()
    assert.deepEqual(
      asked.filter((one) => one.startsWith('DELETE')),
      [third, third, `${third}.1`].map((id) => `DELETE /v1/queue/${id}`),
    )
  })

  test('an empty id, as of an unset variable, is refused with the words for it', async () => {
    for (const [command, what] of [
      [['queue', 'cancel', ''], 'request is empty; capfleet queue lists the ids'],
      [['receipt', ' '], 'request is empty; it is the Capfleet-Request-Id of its answer'],
      [['export', 'show', ''], 'export is empty; capfleet export list lists the ids'],
      [['export', 'cancel', ''], 'export is empty; capfleet export list lists the ids'],
      [['export', 'watch', ''], 'export is empty; capfleet export list lists the ids'],
      [['export', 'get', ''], 'export is empty; capfleet export list lists the ids'],
      [
        ['export', 'schedule', 'remove', ''],
        'schedule is empty; capfleet export schedule list lists the ids',
      ],
      [['token', 'revoke', ''], 'token is empty; capfleet token list lists the ids'],
    ] as const) {
      const { status, stderr } = await run(command)
      assert.equal(status, 2, stderr)
      assert.ok(stderr.includes(`the id of the ${what}`), stderr)
    }
  })

  test('an exact estimate is what the download delivers, and says what it has not counted', async () => {
    const filter = ['--bpf', 'udp', '--slice', '40']
    const whole = await run(['get', ...RANGE, ...filter, '-o', '-'])
    assert.equal(whole.status, 0, whole.stderr)
    const { records } = readPcap(whole.stdout)
    const lines = (await well(['estimate', ...RANGE, ...filter, '--exact', '-o', 'json'])).trim().split('\n')
    const { devices, ...end } = JSON.parse(lines.at(-1) ?? '')
    assert.deepEqual(
      [end.packets, end.bytes, end.exact, devices],
      [String(records.length), String(whole.stdout.length), true, 2],
    )
    const table = await well(['estimate', ...RANGE, ...filter, '--exact'])
    assert.match(table, /^DEVICE +PACKETS +BYTES +COMPLETE +COUNTED-TO +ERROR$/m)
    assert.match(table, /^east +\d+ +[\d.]+ \w+ +true +- +-$/m)
    assert.match(table, new RegExp(`^in total: ${records.length} packets, `, 'm'))
    const bound = await well(['estimate', ...RANGE, '--exact', '--dedup', '1ms'])
    assert.match(bound, /^in total, at most: \d+ packets, /m)
    const part = await run(['estimate', ...RANGE, '--exact', '--count-bytes-max', '100'])
    assert.equal(part.status, 7)
    assert.match(part.stdout.toString(), /^counted so far: \d+ packets, /m)
    assert.match(
      part.stderr,
      /not everything was counted on east, west: .*--count-bytes-max was reached \[incomplete\]/,
    )
    for (const flag of [
      ['--count-bytes-max', '10MiB'],
      ['--wait', '5'],
    ] as const) {
      const refused = await run(['estimate', ...RANGE, ...flag])
      assert.equal(refused.status, 2)
      assert.match(refused.stderr, new RegExp(`${flag[0]} needs --exact`))
    }
  })

  test('an exact estimate that is interrupted ends at the gateway too; one that breaks off is no answer', async () => {
    const asked = Promise.withResolvers<void>()
    const left = Promise.withResolvers<void>()
    let breaksOff = false
    await using gateway = createServer((_req, res) => {
      res.once('close', () => left.resolve())
      const line = { device: 'd0', packets: '1', bytes: '100', checkedBytes: '10', rangeBytes: '20' }
      res.write(`${JSON.stringify(line)}\n`)
      asked.resolve()
      if (breaksOff) res.end()
    }).listen(0, '127.0.0.1')
    await once(gateway, 'listening')
    const url = `http://127.0.0.1:${(gateway.address() as AddressInfo).port}`
    const environment = gatewayEnvironment(url, 'user', USER_PASSWORD)
    const running = client.start(['estimate', ...RANGE, '--exact'], { environment })
    await asked.promise
    running.child.kill('SIGINT')
    await left.promise
    const { status, stdout } = await running.ended
    assert.deepEqual([status, stdout.length], [130, 0])
    breaksOff = true
    const broken = await client.run(['estimate', ...RANGE, '--exact'], { environment })
    assert.equal(broken.status, 7)
    assert.match(broken.stderr, /not all packets were counted \[broken-off\]/)
  })

  describe('the exit status', () => {
    for (const [status, what, args, said] of [
      [2, 'an unknown flag', ['get', '--nonsense'], /unknown option/],
      [2, 'no command', ['nonsense'], /unknown command/],
      [2, 'nothing that is asked for', ['get'], /name a capture, or give a time/],
      [
        2,
        'a capture and a time',
        ['get', 'east-first', '--last', '1m'],
        /is read as the name of a capture, which takes --start and --stop/,
      ],
      [
        2,
        'a time that is none',
        ['get', '--begin', 'soon', '--end', 'now'],
        /--begin "soon" is not in a form that is understood.*\[bad-parameter\]$/m,
      ],
      [4, 'a capture that is not there', ['get', 'nothing'], /\[unknown-capture/],
      [4, 'a device that is not there', ['captures', '-d', 'nowhere'], /\[unknown-device, --device\]/],
      [
        4,
        'a receipt that is not there',
        ['receipt', '00000000-0000-0000-0000-000000000000'],
        /unknown-request/,
      ],
    ] as const) {
      test(`${status}: ${what}`, async () => {
        const ended = await run(args)
        assert.equal(ended.status, status, ended.stderr)
        assert.match(ended.stderr, said)
        assert.equal(ended.stdout.length, 0)
      })
    }

    test('3: wrong credentials, and what a user may not do', async () => {
      const environment = gatewayEnvironment(fleet.gateway.url, 'user', 'wrong')
      assert.equal((await client.run(['devices'], { environment })).status, 3)
      const refused = await run(['stop', '-d', '*'], 'viewer')
      assert.equal(refused.status, 3)
      assert.match(refused.stderr, /\[insufficient-scope\]/)
    })

    test('6: the gateway speaks no TLS', async () => {
      const address = fleet.gateway.url.replace('http:', 'https:')
      const environment = gatewayEnvironment(address, 'user', USER_PASSWORD)
      const ended = await client.run(['devices'], { environment })
      assert.equal(ended.status, 6)
      assert.match(
        ended.stderr,
        /it does not use TLS; is its address http:\/\/127\.0\.0\.1:\d+\? \[gateway-unreachable\]$/m,
      )
    })

    test('6: no device reports the size of a download', async () => {
      const error = { code: 'device-protocol', detail: 'device d0 answered with status 404' }
      const answer = {
        packets: null,
        bytes: null,
        exact: false,
        ignored: [],
        devices: [{ device: 'd0', error }],
      }
      const gateway = createServer((_req, res) => res.end(JSON.stringify(answer))).listen(0, '127.0.0.1')
      await once(gateway, 'listening')
      const url = `http://127.0.0.1:${(gateway.address() as AddressInfo).port}`
      const environment = gatewayEnvironment(url, 'user', USER_PASSWORD)
      const { status, stdout, stderr } = await client.run(['estimate', ...RANGE], { environment })
      gateway.close()
      assert.equal(status, 6, stderr)
      assert.match(stdout.toString(), /^the size is not known$/m)
      assert.match(stderr, /no device reported the size: d0 \[device-protocol\]/)
    })

    test('6: no one answers', async () => {
      const environment = gatewayEnvironment('http://127.0.0.1:9', 'user', USER_PASSWORD)
      const ended = await client.run(['get', 'east-first', '-o', 'x.pcap'], { environment })
      assert.equal(ended.status, 6)
      assert.match(ended.stderr, /cannot be reached.*\[gateway-unreachable\]/)
      assert.deepEqual(
        await readdir(client.folder).then((names) => names.filter((name) => name === 'x.pcap')),
        [],
      )
    })
  })
})
