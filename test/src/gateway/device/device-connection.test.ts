// What a device sees of a download that its gateway could not begin in time.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { type TestContext, test } from 'node:test'
import { Device } from '../../../../src/gateway/device/device.ts'
import { DeviceConnection } from '../../../../src/gateway/device/device-connection.ts'
import {
  LARGE_READS_UNTIL_BYTES,
  MERGE_READ_SIZE,
  READ_BUFFERS,
} from '../../../../src/gateway/device/read-size.ts'
import { CapfleetError } from '../../../../src/shared/base/error.ts'
import { Secret } from '../../../../src/shared/base/secret.ts'
import { eventually } from '../../../support/eventually.ts'

const REQUEST = 'GET /api/v1/pcap/timerange HTTP/1.1\r\n\r\n'
const CONNECT_TIMEOUT_MS = 5_000
const { leastBytes, mostBytes } = MERGE_READ_SIZE

interface Stage {
  /** The only connection to the device. */
  readonly arrived: Promise<Socket>
  /** A connection whose request has been sent. */
  connect(signal?: AbortSignal): DeviceConnection
  /** The device sends until the connection ends. */
  sendEndlessly(): Promise<void>
}

async function stage(t: TestContext): Promise<Stage> {
  const server = createServer({ allowHalfOpen: true }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const arrived = once(server, 'connection').then(([socket]) => socket as Socket)
  t.after(async () => {
    ;(await arrived).destroy()
    server.close()
    await eventually(() => READ_BUFFERS.takenBytes === 0, { message: 'all buffers are back' })
  })
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const device = new Device({ name: 'nyc1', url, user: 'gateway', password: new Secret('secret') })
  return {
    arrived,
    connect: (signal = new AbortController().signal) => {
      const options = { connectTimeoutMs: CONNECT_TIMEOUT_MS, readSize: MERGE_READ_SIZE }
      const connection = new DeviceConnection(device, options)
      connection.ask(REQUEST, { signal, idleTimeoutMs: 30_000 })
      return connection
    },
    sendEndlessly: async () => {
      const device = await arrived
      device.on('error', () => undefined)
      const bytes = Buffer.alloc(mostBytes)
      const send = (): void => void device.write(bytes, (error) => error ?? send())
      send()
    },
  }
}

test('nothing is sent when the connection comes too late, as after a stop of the process', async (t) => {
  const { arrived, connect } = await stage(t)
  using connection = connect()
  const now = performance.now()
  t.mock.method(performance, 'now', () => now + CONNECT_TIMEOUT_MS + 1)
  await assert.rejects(
    connection.next(),
    (error) => error instanceof CapfleetError && error.code === 'device-timeout',
  )
  const device = await arrived
  const seen: string[] = []
  device.on('data', (bytes) => seen.push(bytes.toString()))
  device.on('error', () => undefined)
  await new Promise((resolve) => device.once('close', resolve))
  assert.deepEqual(seen, [])
})

test('a request that has had no answer is taken back by a reset, so that it cannot arrive later', async (t) => {
  const { arrived, connect } = await stage(t)
  const abort = new AbortController()
  using connection = connect(abort.signal)
  const device = await arrived
  const [bytes] = (await once(device, 'data')) as [Buffer]
  assert.equal(bytes.toString(), REQUEST)
  abort.abort(new Error('nobody waits'))
  await assert.rejects(connection.next(), /nobody waits/)
  const [error] = (await once(device, 'error')) as [NodeJS.ErrnoException]
  assert.equal(error.code, 'ECONNRESET')
})

test('a connection that the device closes without an answer leaves nothing open', async (t) => {
  const { arrived, connect } = await stage(t)
  const connection = connect()
  const device = await arrived
  device.end()
  assert.equal(await connection.next(), undefined)
  connection[Symbol.dispose]()
  device.destroy()
  await eventually(() => !process.getActiveResourcesInfo().includes('TCPSocketWrap'), {
    message: 'both sides are closed',
  })
})

test('reads grow while they are taken at once, but not while all connections together hold much', async (t) => {
  const { connect, sendEndlessly } = await stage(t)
  using connection = connect()
  await sendEndlessly()
  await readUntil(connection, mostBytes)
  const held = READ_BUFFERS.take(LARGE_READS_UNTIL_BYTES)
  await readUntil(connection, leastBytes)
  for (let count = 0; count < 20; count++) {
    assert.equal(await readOne(connection), leastBytes)
    assert.ok(READ_BUFFERS.takenBytes <= LARGE_READS_UNTIL_BYTES + 3 * leastBytes)
  }
  READ_BUFFERS.give(held)
  await readUntil(connection, mostBytes)
})

test('a connection whose reads are not consumed holds two of them and the next buffer, and continues with small ones', async (t) => {
  // A pause of this process must not count as a pause of the consumer.
  let nowMs = performance.now()
  t.mock.method(performance, 'now', () => nowMs)
  const { connect, sendEndlessly } = await stage(t)
  const connection = connect()
  await sendEndlessly()
  await readUntil(connection, mostBytes)
  await eventually(() => READ_BUFFERS.takenBytes === 3 * mostBytes, { message: 'three buffers are held' })
  nowMs += 60_000
  await readUntil(connection, leastBytes)
  connection[Symbol.dispose]()
})

/** Reads, and releases what it read, until a read came in a buffer of this size. */
async function readUntil(connection: DeviceConnection, capacity: number): Promise<void> {
  while ((await readOne(connection)) !== capacity);
}

/** The size of the buffer that the next read came in. */
async function readOne(connection: DeviceConnection): Promise<number> {
  const read = await connection.next()
  assert.ok(read !== undefined)
  const capacity = read.bytes.buffer.byteLength
  read.release()
  return capacity
}
