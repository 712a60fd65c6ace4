// Tokens on the command line, with a real gateway: created, used, listed, revoked.
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import {
  gatewayEnvironment,
  hostedClient,
  type TempClient,
} from '../../../../support/processes/client-process.ts'
import { gatewayWorld } from '../../../../support/processes/gateway-world.ts'
import { USER_PASSWORD } from '../../../../support/suite-secrets.ts'

describe('capfleet token', () => {
  const world = gatewayWorld(10)
  let client: TempClient
  before(async () => {
    client = await hostedClient()
  })
  after(() => client[Symbol.asyncDispose]())

  const asUser = () => gatewayEnvironment(world.gateway.url, 'user', USER_PASSWORD)
  const asToken = (token: string) => ({ CAPFLEET_URL: world.gateway.url, CAPFLEET_TOKEN: token })
  const run = (environment: Readonly<Record<string, string>>, ...args: readonly string[]) =>
    client.run(args, { environment })

  test('create prints a token that works until it is revoked', async () => {
    const made = await run(
      asUser(),
      'token',
      'create',
      '--devices',
      '*',
      '--scopes',
      'device:read',
      '--lifetime',
      '1h',
      '--note',
      'x y',
    )
    assert.equal(made.status, 0, made.stderr)
    const token = made.stdout.toString().trim()
    const [, id = ''] = /^token (\S+), good until \d{4}-\d\d-\d\d /.exec(made.stderr) ?? []
    assert.ok(!made.stderr.includes(token))
    const devices = await run(asToken(token), 'devices', '-o', 'json')
    assert.equal(devices.status, 0, devices.stderr)
    const list = (await run(asUser(), 'token', 'list')).stdout.toString()
    assert.match(list, new RegExp(`^${id} +user +\\S+ \\S+ +- +device:read +- +- +x y$`, 'm'))
    assert.ok(!list.includes(token))
    assert.equal((await run(asUser(), 'token', 'revoke', id)).status, 0)
    const refused = await run(asToken(token), 'devices')
    assert.deepEqual([refused.status, refused.stdout.toString()], [3, ''])
    assert.match(refused.stderr, /the token has been revoked/)
    assert.equal((await run(asUser(), 'token', 'revoke', 'nothing')).status, 4)
  })

  test('create requires the devices, and gives the usual scopes', async () => {
    const unsaid = await run(asUser(), 'token', 'create')
    assert.deepEqual([unsaid.status, unsaid.stdout.toString()], [2, ''])
    assert.match(unsaid.stderr, /--devices is missing/)
    const made = await run(asUser(), 'token', 'create', '--devices', '*', '--note', 'usual')
    assert.equal(made.status, 0, made.stderr)
    const list = (await run(asUser(), 'token', 'list')).stdout.toString()
    assert.match(list, /device:read capture:download +- +- +usual$/m)
  })

  test('create takes the time at which the token ends, and the help says what is needed', async () => {
    const [day] = new Date(Date.now() + 172_800_000).toISOString().split('T')
    const create = ['token', 'create', '--devices', '*']
    const made = await run(asUser(), ...create, '--note', 'ends', '--expires', `${day}T18:00+01:00`)
    assert.equal(made.status, 0, made.stderr)
    const list = (await run(asUser(), 'token', 'list', '-o', 'csv')).stdout.toString()
    assert.match(list, new RegExp(`,${day}T17:00:00\\.000Z,.*,ends`, 'm'))
    const past = await run(asUser(), ...create, '--expires', '2026-11-02')
    assert.equal(past.status, 2)
    assert.match(past.stderr, /--expires must be in the future, got 2026-11-02T00:00:00\.000Z/)
    const both = await run(asUser(), ...create, '--expires', `${day}`, '--lifetime', '1h')
    assert.equal(both.status, 2)
    assert.match(both.stderr, /--expires and --lifetime are both given/)
    const help = (await run(asUser(), 'token', 'create', '--help')).stdout.toString().replaceAll(/\s+/g, ' ')
    assert.match(help, /--devices <text> [^)]*without it: an error; '\*' gives all that you see/)
  })

  test('create names the flag of what the user has not', async () => {
    const refused = await run(asUser(), 'token', 'create', '--devices', '*', '--scopes', 'admin')
    assert.equal(refused.status, 3)
    assert.match(refused.stderr, /--scopes/)
  })

  test('login keeps a token, which is read from a pipe', async () => {
    const made = await run(asUser(), 'token', 'create', '--devices', '*', '--scopes', 'capture:download')
    const token = made.stdout.toString().trim()
    const login = ['login', world.gateway.url, '--token', '--name', 'lab']
    const wrong = await client.run(login, { input: 'no-token\n' })
    assert.equal(wrong.status, 3, wrong.stderr)
    const right = await client.run(login, { input: `${token}\n` })
    assert.equal(right.status, 0, right.stderr)
    assert.ok(!right.stderr.includes(token))
    assert.match(await readFile(join(client.home, 'capfleet/config.yaml'), 'utf8'), /token: eyJ/)
    const estimate = await client.run(['estimate', '--last', '1m'])
    assert.notEqual(estimate.status, 3, estimate.stderr)
  })
})
