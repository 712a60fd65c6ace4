// The program that `helm test` runs: it compares a packet of any fleet, and says what is wrong with a fleet without
// packets.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { CHART } from '../support/helm/chart.ts'
import { startSmallFleet } from '../support/processes/small-fleet.ts'
import { tempFolder } from '../support/temp-folder.ts'

const PROGRAM = join(CHART, 'files', 'one-packet.mjs')

interface Ended {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

/** Runs it as the pod does. */
async function runTest(url: string, authorization: string): Promise<Ended> {
  const [username = '', password = ''] = atob(authorization.replace('Basic ', '')).split(':')
  await using folder = await tempFolder()
  await writeFile(join(folder.path, 'username'), username)
  await writeFile(join(folder.path, 'password'), password)
  const env = { GATEWAY_URL: url, LOGIN_FOLDER: folder.path, TIMEOUT_S: '20' }
  return await promisify(execFile)(process.execPath, [PROGRAM], { env }).then(
    ({ stdout, stderr }) => ({ code: 0, stdout, stderr }),
    (error: Ended) => error,
  )
}

test('helm test finds a packet of the fleet, the same by way of the queue and from its device', async () => {
  await using fleet = await startSmallFleet()
  const { gateway } = fleet
  const { code, stdout, stderr } = await runTest(gateway.url, gateway.as.user.authorization)
  assert.deepEqual([code, stderr], [0, ''])
  assert.match(stdout, /^test: one packet of \S+ at (east|west): \d+ bytes, the same both ways\n$/)
})

test('helm test says that there is no packet yet', async () => {
  await using fleet = await startSmallFleet([], () => undefined)
  const { gateway } = fleet
  const { code, stderr } = await runTest(gateway.url, gateway.as.user.authorization)
  assert.equal(code, 1)
  assert.match(stderr, /^test: the fleet has no packet to download yet \(0 captures\); start a capture/)
})

test('helm test says what a gateway refuses', async () => {
  await using fleet = await startSmallFleet()
  const { code, stderr } = await runTest(fleet.gateway.url, `Basic ${btoa('user:wrong password')}`)
  assert.equal(code, 1)
  assert.match(stderr, /\/stream\/list\? answered 401: .*unauthenticated/)
})

test('helm test sees a packet that is another one on its way', async () => {
  await using fleet = await startSmallFleet()
  const { gateway } = fleet
  const server = createServer((request, response) => {
    const { authorization = '' } = request.headers
    void fetch(`${gateway.url}${request.url}`, { headers: { authorization } })
      .then((answer) => answer.bytes())
      .then((bytes) => {
        if (request.url?.startsWith('/api/')) bytes[bytes.length - 1] = ~(bytes.at(-1) ?? 0)
        response.end(bytes)
      })
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const { code, stderr } = await runTest(url, gateway.as.user.authorization)
  server.close()
  assert.equal(code, 1)
  assert.match(stderr, /^test: the packet of \S+ is another one at the gateway than at (east|west)\n$/)
})
