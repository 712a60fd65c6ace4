// The findings of `capfleet device check` for capfleet and third-party devices.
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import type { Finding } from '../../../appliance/doctor/finding.ts'
import { Device } from '../../../src/gateway/device/device.ts'
import { checkDevice } from '../../../src/operator/device-check.ts'
import { Secret } from '../../../src/shared/base/secret.ts'
import { ApiDevice } from '../../support/devices/api-device.ts'
import { makePacket, makePcap } from '../../support/packets/packet-maker.ts'
import { hostedClient } from '../../support/processes/client-process.ts'
import { startTempAppliance } from '../../support/processes/temp-appliance.ts'
import { REPOSITORY_ROOT } from '../../support/repository-files.ts'

const NEVER = new AbortController().signal

const levels = (findings: readonly Finding[]) =>
  Object.fromEntries(findings.map(({ check, level }) => [check, level]))
const detail = (findings: readonly Finding[], name: string) =>
  findings.find(({ check }) => check === name)?.detail ?? ''

test('a check of one of our devices finds nothing to fix', async () => {
  await using appliance = await startTempAppliance()
  const path = join(appliance.folder, 'some.pcap')
  await writeFile(path, makePcap([makePacket(1_793_610_000_000_000_000n, 'one')]))
  await appliance.importFiles('some', path)
  const [user = '', password = ''] = appliance.credentials('full').split(':')
  const device = new Device({ name: 'ours', url: appliance.url, user, password: new Secret(password) })
  const findings = await checkDevice(device, NEVER)
  assert.deepEqual(
    findings.filter(({ level }) => level !== 'ok'),
    [],
  )
  assert.match(detail(findings, 'version'), /, capfleet$/)
  assert.match(detail(findings, 'download'), /^1 packet, 19 bytes of the first second of some/)
  assert.match(detail(findings, 'order'), /and the device declares it$/)
})

describe('a device of another manufacturer', () => {
  let foreign: ApiDevice
  before(async () => {
    foreign = await ApiDevice.start('foreign', 50)
  })
  after(() => foreign?.[Symbol.asyncDispose]())

  const device = (kind?: 'capfleet' | 'api') =>
    new Device({
      name: 'foreign',
      url: foreign.config.url,
      user: 'gateway',
      password: new Secret(foreign.password),
      kind,
    })
  const check = async (behaviour: ApiDevice['behaviour'] = {}) => {
    foreign.behaviour = behaviour
    foreign.mostRunning = 0
    const findings = await checkDevice(device(), NEVER)
    assert.ok(foreign.mostRunning <= 1, 'it takes one stream')
    return findings
  }

  test('lacks what the API does not have', async () => {
    const findings = await check()
    assert.deepEqual(levels(findings), {
      version: 'ok',
      clock: 'ok',
      readers: 'warning',
      list: 'ok',
      bounds: 'ok',
      estimates: 'ok',
      resume: 'ok',
      download: 'ok',
      end: 'ok',
      timestamps: 'ok',
      order: 'ok',
      times: 'ok',
      FilterBPF: 'ok',
      FilterFrame: 'ok',
    })
    assert.match(detail(findings, 'version'), /^7\.1, third-party$/)
    assert.match(detail(findings, 'download'), /^17 packets/)
    assert.match(detail(findings, 'bounds'), /users whose bounds have a filter get none of its packets$/)
    assert.ok(!foreign.asked.some((target) => target.includes('estimate')))
  })

  test('that ends its answers with the connection, or has microseconds', async () => {
    assert.equal(levels(await check({ endsByClose: 'whole' })).end, 'warning')
    assert.equal(detail(await check({ isCoarse: true }), 'timestamps'), 'microseconds')
  })

  test('that ignores a filter', async () => {
    const findings = await check({ ignores: ['FilterFrame'] })
    assert.deepEqual([levels(findings).FilterBPF, levels(findings).FilterFrame], ['ok', 'warning'])
    const found = findings.find((finding) => finding.check === 'FilterFrame')
    assert.equal(found?.detail, 'it ignores FilterFrame, and sends packets that do not match')
    assert.equal(found?.fix, 'downloads with FilterFrame are rejected')
    assert.equal(levels(await check({ frames: 'equal' })).FilterFrame, 'warning', 'it passes over !=')
  })

  test('that still counts a stream that has just ended', async () => {
    const findings = await check({ streamsMax: 1, isFreedLate: true })
    assert.deepEqual([levels(findings).FilterBPF, levels(findings).FilterFrame], ['ok', 'ok'])
  })

  test('that rounds times down to whole seconds', async () => {
    const findings = await check({ ranges: 'seconds, rounded down' })
    assert.deepEqual([levels(findings).download, levels(findings).times], ['ok', 'warning'])
    assert.match(findings.find((finding) => finding.check === 'times')?.fix ?? '', /whole seconds/)
  })

  test('that refuses downloads, or is not there', async () => {
    foreign.refusal = { status: 500, text: 'disk failure' }
    const findings = await check()
    foreign.refusal = undefined
    assert.equal(levels(findings).download, 'problem')
    assert.match(detail(findings, 'download'), /device foreign/)
    assert.equal(levels(findings).FilterBPF, undefined, 'filters are not tried')
    const full = await check({ streamsMax: 0 })
    assert.match(full.find((finding) => finding.check === 'download')?.fix ?? '', /when a stream is free/)
    const absent = new Device({ name: 'absent', url: 'http://127.0.0.1:1', token: new Secret('x') })
    assert.deepEqual(levels(await checkDevice(absent, NEVER)), { version: 'problem' })
  })

  test('is announced before each request', async () => {
    foreign.behaviour = {}
    const questions: string[] = []
    await checkDevice(device(), NEVER, (question) => questions.push(question))
    assert.equal(questions.length, 6)
    assert.match(questions[0] ?? '', /^its version \(at most 30 s\)$/)
  })

  test('that is configured as one of ours', async () => {
    foreign.behaviour = {}
    const findings = await checkDevice(device('capfleet'), NEVER)
    assert.match(detail(findings, 'version'), /configured as kind: capfleet$/)
  })

  test('is checked from the command line, by its address', async () => {
    foreign.behaviour = {}
    await using client = await hostedClient()
    const run = async (...options: string[]) => {
      const typed = ['device', 'check', ...options]
      const input = `${foreign.password}\n`
      const { stdout, ...end } = await client.run(typed, { input, cwd: REPOSITORY_ROOT })
      return { stdout: stdout.toString(), ...end }
    }
    const { stdout, stderr, status } = await run('--url', foreign.config.url)
    assert.equal(status, 0, stderr)
    assert.match(stdout, /^ok .*version +7\.1, third-party$/m)
    assert.match(stdout, /^warning .*readers .*\n +-> downloads that other clients run/m)
    assert.match(stdout, /^0 problems, 1 warning$/m)
    assert.ok(!(stdout + stderr).includes(foreign.password))
    const json = await run('--url', foreign.config.url, '--json')
    assert.equal(JSON.parse(json.stdout).findings.length, 14)
    for (const [options, said] of [
      [['foreign', '--url', foreign.config.url], /by its name \(foreign\) or by --url, not both/],
      [['--url', 'http://u:p@127.0.0.1'], /--url must be http:.* without user/],
      [['--url', 'ftp://x'], /--url must be http:/],
      [['--url', foreign.config.url, '--user', 'g:w'], /--user must not contain a colon/],
      [
        ['--url', foreign.config.url, '--ca', 'package.json'],
        /--ca package\.json is not a file of PEM certificates/,
      ],
      [
        ['--url', foreign.config.url, '--ca', '/no/such.pem'],
        /--ca \/no\/such\.pem is not a file of PEM certificates .*ENOENT/,
      ],
    ] as const) {
      const refused = await run(...options)
      assert.equal(refused.status, 1)
      assert.match(refused.stderr, said)
    }
    const mistake = await run()
    assert.equal(mistake.status, 1)
    assert.match(mistake.stderr, /name a device of the configuration \(--config\), or give its --url/)
  })
})
