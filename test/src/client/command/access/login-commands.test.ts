// What a user sees at a terminal: prompts that hide the password, and a progress bar.
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { writeBigCapture } from '../../../../support/packets/big-capture.ts'
import {
  gatewayEnvironment,
  hostedClient,
  type TempClient,
} from '../../../../support/processes/client-process.ts'
import { type SmallFleet, startSmallFleet } from '../../../../support/processes/small-fleet.ts'
import { onTerminal } from '../../../../support/processes/terminal.ts'
import { REPOSITORY_ROOT } from '../../../../support/repository-files.ts'
import { USER_PASSWORD } from '../../../../support/suite-secrets.ts'

const CAPFLEET = join(REPOSITORY_ROOT, 'src/capfleet')

describe('at a terminal', () => {
  const parts = new AsyncDisposableStack()
  let fleet: SmallFleet
  let client: TempClient

  before(async () => {
    fleet = parts.use(await startSmallFleet())
    client = parts.use(await hostedClient())
  })
  after(() => parts.disposeAsync())

  test('login asks for the user and, hidden, for the password', async () => {
    const { status, shown } = await onTerminal(
      `${CAPFLEET} login ${fleet.gateway.url} --name lab`,
      [
        ['User: ', 'user'],
        ['Password for user: ', USER_PASSWORD],
      ],
      { XDG_CONFIG_HOME: client.home },
    )
    assert.equal(status, 0, shown)
    assert.ok(!shown.includes(USER_PASSWORD), shown)
    assert.match(await readFile(join(client.home, 'capfleet/config.yaml'), 'utf8'), /current: lab/)
  })

  test('a download has a bar with share, rate and the time that is left', async () => {
    const [east] = fleet.appliances
    const [line] = fleet.lines
    assert.ok(east && line)
    const path = join(east.folder, 'big.pcap')
    await writeBigCapture(path, 4_000)
    await east.importFiles('big', path)
    // So that it lasts for some seconds.
    line.bytesPerSecond = 1_500_000
    const environment = gatewayEnvironment(fleet.gateway.url, 'user', USER_PASSWORD)
    const { status, shown } = await onTerminal(
      `${CAPFLEET} get big -o ${client.folder}/big.pcap`,
      [],
      environment,
    )
    assert.equal(status, 0, shown)
    // Each is drawn over the previous one.
    const lines = shown.split('\r\u001b[K')
    const bar = /^big\.pcap \[[#-]{24}\] \d+% [\d.]+ [KMG]?i?B [\d.]+ [KMG]?i?B\/s ETA \d+ s$/
    assert.ok(
      lines.some((line) => bar.test(line)),
      shown,
    )
    assert.ok(
      lines.some((line) => /^big\.pcap: complete, \d+ bytes, sha256 [0-9a-f]{64}\r\n$/.test(line)),
      shown,
    )
  })

  test('a capture file is not poured over it', async () => {
    const environment = gatewayEnvironment(fleet.gateway.url, 'user', USER_PASSWORD)
    const { status, shown } = await onTerminal(`${CAPFLEET} get east-first -o -`, [], environment)
    assert.equal(status, 2)
    assert.match(shown, /cannot be shown on a terminal; pipe it/)
  })
})
