// The lines of the README that continue a download do what they say.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { FakeDevice } from '../../support/devices/fake-device.ts'
import { fleetPcap } from '../../support/devices/fake-fleet.ts'
import { readPcap, recordLines } from '../../support/packets/pcap-records.ts'
import { startTempGateway } from '../../support/processes/temp-gateway.ts'
import { TempRedis } from '../../support/processes/temp-redis.ts'
import { REPOSITORY_ROOT } from '../../support/repository-files.ts'
import { tempFolder } from '../../support/temp-folder.ts'

const run = promisify(execFile)
const PCAP = fleetPcap(0, 400)
const DELIVERED = 250
const INSIDE_A_RECORD = 20

/** The block of the README, for this gateway: what breaks off, and what continues it. */
async function readmeLines(url: string): Promise<readonly [string, string]> {
  const readme = await readFile(join(REPOSITORY_ROOT, 'README.md'), 'utf8')
  const block = /```sh\n(url=[\s\S]*?)```/.exec(readme)?.[1] ?? ''
  const lines = block
    .replaceAll('http://127.0.0.1:8080', url)
    .replaceAll('--netrc-file .capfleet/netrc', '-H "$AUTH"')
    .split('\n')
  const cut = lines.findIndex((line) => line.includes('# breaks off'))
  assert.ok(cut > 0)
  const [first, rest] = [lines.slice(0, cut + 1), lines.slice(cut + 1)]
  return [first.join('\n'), [...lines.slice(0, cut), ...rest].join('\n')]
}

test('the lines of the README bring the rest of a download that broke off, in both forms', async () => {
  await using folder = await tempFolder()
  await using redis = await TempRedis.create()
  await using device = await FakeDevice.start('d0', PCAP)
  await using gateway = await startTempGateway([device], redis.url)
  const env = { ...process.env, AUTH: `authorization: ${gateway.as.user.authorization}` }
  const options = { cwd: folder.path, env }
  const [first, rest] = await readmeLines(gateway.url)
  device.behaviour = { dieAfterBytes: fleetPcap(0, DELIVERED).length + INSIDE_A_RECORD }
  await assert.rejects(run('bash', ['--norc', '-ec', first], options), /curl: \((18|56)\)/)
  device.behaviour = {}
  await run('bash', ['--norc', '-ec', rest], options)
  assert.ok((await readFile(join(folder.path, 'day.pcap'))).equals(PCAP))
  const newFile = readPcap(await readFile(join(folder.path, 'rest.pcap')))
  assert.deepEqual(recordLines(newFile.records), recordLines(readPcap(PCAP).records.slice(DELIVERED)))
})
