// `capfleet health`, as the health check of a container runs it.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer as createHttpServer, type RequestListener } from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import { type AddressInfo, createServer, type Server } from 'node:net'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { createTempCertificate } from '../../../support/access/temp-certificate.ts'
import { hostedClient, type TempClient } from '../../../support/processes/client-process.ts'
import { startTempAppliance } from '../../../support/processes/temp-appliance.ts'

describe('capfleet health', () => {
  const parts = new AsyncDisposableStack()
  let client: TempClient

  before(async () => {
    client = parts.use(await hostedClient())
  })
  after(() => parts.disposeAsync())

  const listen = async (server: Server): Promise<number> => {
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    parts.defer(() => void server.close())
    return (server.address() as AddressInfo).port
  }
  const answer: RequestListener = (request, response) =>
    response.writeHead(request.url === '/livez' ? 200 : 404).end()

  test('ends well, and silently, when the program answers', async () => {
    await using appliance = await startTempAppliance()
    const { status, stdout, stderr } = await client.run(['health', appliance.url])
    assert.deepEqual([status, stdout.toString(), stderr], [0, '', ''])
  })

  test('takes the address from the environment of its container', async () => {
    const port = await listen(createHttpServer(answer))
    const environment = { CAPFLEET_HEALTH_URL: `http://127.0.0.1:${port}/` }
    assert.equal((await client.run(['health'], { environment })).status, 0)
  })

  test('asks the gateway that the user is logged in to, unless another is named', async () => {
    const port = await listen(createHttpServer(answer))
    const asked = { environment: { CAPFLEET_CONTEXT: 'lab' } }
    await mkdir(join(client.home, 'capfleet'), { mode: 0o700 })
    await writeFile(
      join(client.home, 'capfleet', 'config.yaml'),
      `current: other\ncontexts:
  lab: {url: "http://127.0.0.1:${port}/", token: x}
  other: {url: "http://127.0.0.1:1/", token: x}\n`,
      { mode: 0o600 },
    )
    assert.equal((await client.run(['health', '--context', 'lab'])).status, 0)
    assert.equal((await client.run(['health'], asked)).status, 0)
    const other = await client.run(['health'])
    assert.equal(other.status, 1)
    assert.match(other.stderr, /127\.0\.0\.1:1 cannot be reached/)
    assert.equal((await client.run(['health', `http://127.0.0.1:${port}`])).status, 0)
    const unknown = await client.run(['health', '--context', 'none'])
    assert.match(unknown.stderr, /no context is named "none"; known contexts: lab, other/)
    await rm(join(client.home, 'capfleet'), { recursive: true })
  })

  test('ends with 1 and says where nothing answers', async () => {
    const server = createServer()
    const port = await listen(server)
    await new Promise((resolve) => server.close(resolve))
    const { status, stderr } = await client.run(['health', `http://127.0.0.1:${port}`])
    assert.equal(status, 1)
    assert.match(stderr, new RegExp(`127\\.0\\.0\\.1:${port} cannot be reached: .*ECONNREFUSED`))
  })

  test('ends with 1 if something other than our program answers', async () => {
    const port = await listen(createHttpServer((_request, response) => response.writeHead(404).end()))
    const { status, stderr } = await client.run(['health', `http://127.0.0.1:${port}`])
    assert.equal(status, 1)
    assert.equal(stderr, `capfleet: http://127.0.0.1:${port}/livez answers with status 404\n`)
  })

  test('ends with 1 when the program takes connections and says nothing', async () => {
    const port = await listen(createServer((socket) => socket.resume()))
    const { status, stderr } = await client.run(['health', `http://127.0.0.1:${port}`])
    assert.equal(status, 1)
    assert.match(stderr, /did not answer within 5 s\n$/)
  })

  test('uses https with the CA certificate of the program, and fails without it', async () => {
    await using certificate = await createTempCertificate()
    const [cert, key] = await Promise.all([readFile(certificate.cert), readFile(certificate.key)])
    const url = `https://localhost:${await listen(createHttpsServer({ cert, key }, answer))}`
    assert.equal((await client.run(['health', url, '--ca', certificate.cert])).status, 0)
    const { status, stderr } = await client.run(['health', url])
    assert.equal(status, 1)
    assert.match(stderr, /is not trusted/)
  })
})
