// How much of an answer the gateway reads from a device that sends more than was requested, and which connections it
// uses.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { afterEach, beforeEach, describe, test } from 'node:test'
import { Device } from '../../../../src/gateway/device/device.ts'
import { ANSWER_BYTES_MAX, DeviceClient } from '../../../../src/gateway/device/device-client.ts'
import {
  probeClock,
  probeOldestPacket,
  probeStatus,
  probeVersion,
} from '../../../../src/gateway/fleet/health/device-probe.ts'
import { Secret } from '../../../../src/shared/base/secret.ts'
import { endless, RawDevice } from '../../../support/devices/raw-device.ts'
import { eventually } from '../../../support/eventually.ts'

const HEAD = 'HTTP/1.1 200 OK\r\n\r\n'
const LIMIT = { timeoutMs: 20_000, signal: new AbortController().signal }
const QUESTION = { bytesMax: 100, signal: LIMIT.signal }
/** The sockets of both sides can hold this much, so it is sent before the device can be cut off. */
const SOCKETS_HOLD = 16 * 1024 * 1024

describe('of an answer without end', () => {
  let raw: RawDevice
  let client: DeviceClient
  let impatient: DeviceClient
  const hidden: string[] = []

  beforeEach(async () => {
    raw = await RawDevice.start()
    const device = new Device({ name: 'd0', url: raw.url, user: 'u', password: new Secret('p') })
    const onHiddenText = (text: string) => hidden.push(text)
    client = new DeviceClient(device, { connectTimeoutMs: 20_000, idleTimeoutMs: 20_000, onHiddenText })
    impatient = new DeviceClient(device, { connectTimeoutMs: 20_000, idleTimeoutMs: 400 })
    hidden.length = 0
  })
  afterEach(async () => {
    client.close()
    impatient.close()
    await raw[Symbol.asyncDispose]()
  })

  const answers = (head: string, again: string) => {
    raw.answer = {
      writes: (function* () {
        yield Buffer.from(head)
        yield* endless(again.repeat(1_000))
      })(),
    }
  }
  const entry = '{"StreamName":"lab","StartTS":"1700000000000000000"},'

  for (const [what, ask, bytesMax] of [
    ['the version', () => probeVersion(client, LIMIT), ANSWER_BYTES_MAX.version],
    ['the clock', () => probeClock(client, LIMIT), ANSWER_BYTES_MAX.clock],
    ['the status', () => probeStatus(client, LIMIT), ANSWER_BYTES_MAX.status],
    ['the oldest packet', () => probeOldestPacket(client, LIMIT), ANSWER_BYTES_MAX.status],
  ] as const) {
    test(`no more than its limit is taken for ${what}`, async () => {
      answers(`${HEAD}{"version":"`, 'x')
      await assert.rejects(ask(), {
        code: 'device-protocol',
        message: `device d0 sent more than ${bytesMax} bytes, more than the limit for this answer`,
      })
      await raw.until(() => raw.connections === 0)
      assert.ok(raw.writtenBytes < bytesMax + SOCKETS_HOLD, `${raw.writtenBytes} bytes were taken`)
    })
  }

  test('a problem is reported by its status when it has no end', async () => {
    answers('HTTP/1.1 400 No\r\n\r\n{"code":"bad-bpf","detail":"', 'x')
    await assert.rejects(client.getText('/x', QUESTION), {
      code: 'device-protocol',
      message: 'device d0 answered /x with status 400',
    })
    await raw.until(() => raw.connections === 0)
    assert.ok(raw.writtenBytes < SOCKETS_HOLD)
  })

  test('a list is read to its limits of bytes and entries', async () => {
    const listOf = async (limits: { bytesMax: number; entriesMax: number }) => {
      answers(`${HEAD}{"List":[`, entry)
      let entries = 0
      for await (const batch of client.getList('/stream/list', limits, LIMIT)) entries += batch.length
      return entries
    }
    await assert.rejects(listOf({ bytesMax: 1_000_000, entriesMax: 1_000_000 }), {
      code: 'device-protocol',
      message: /1000000 bytes/,
    })
    await assert.rejects(listOf({ bytesMax: 100_000_000, entriesMax: 5_000 }), {
      code: 'device-protocol',
      message: /more than 5000 entries/,
    })
    await raw.until(() => raw.connections === 0)
  })

  test('an encoding that was not requested is named, and not read as something else', async () => {
    raw.answer = {
      writes: [Buffer.from('HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}')],
    }
    const error = {
      code: 'device-protocol',
      message: 'device d0 sent /stream/list with Content-Encoding, although no encoding was requested',
    }
    await assert.rejects(client.getText('/stream/list?TSBegin=1', QUESTION), error)
    const list = client.getList('/stream/list', { bytesMax: 100, entriesMax: 1 }, LIMIT)
    await assert.rejects(list.next(), error)
  })

  test('no more interim answers are taken than a head has bytes', async () => {
    raw.answer = { writes: endless('HTTP/1.1 102 Wait\r\nA: b\r\n\r\n'.repeat(1_000)) }
    await assert.rejects(client.getText('/x', QUESTION), { code: 'device-protocol' })
    await raw.until(() => raw.connections === 0)
  })

  test('interim answers do not make the gateway wait longer', async () => {
    raw.answer = { writes: endless('HTTP/1.1 102 Wait\r\n\r\n'), pauseMs: 50 }
    await assert.rejects(impatient.getText('/x', QUESTION), { code: 'device-timeout' })
    await raw.until(() => raw.connections === 0)
  })

  test('a device that switches protocols breaks the protocol', async () => {
    raw.answer = {
      writes: [Buffer.from('HTTP/1.1 101 Go\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n')],
      end: 'hang',
    }
    await assert.rejects(client.getText('/x', QUESTION), { code: 'device-protocol' })
  })

  test('the version is one short line, whatever the device sends', async () => {
    raw.answer = { writes: [Buffer.from(`${HEAD}{"version":"1.2\\u001b[31m\\n${'9'.repeat(1_000)}"}`)] }
    const { version, kind } = await probeVersion(client, LIMIT)
    assert.equal(kind, 'api')
    assert.match(version ?? '', /^1\.2 \[31m 9{118,120}$/)
  })

  test("the text of a device's own failure is logged, but not sent to the caller", async () => {
    const detail = 'cannot read /var/lib/store/a.seg'
    const body = JSON.stringify({ code: 'store-unavailable', detail })
    raw.answer = { writes: [Buffer.from(`HTTP/1.1 503 No\r\nRetry-After: 9\r\n\r\n${body}`)] }
    await assert.rejects(client.getText('/x', QUESTION), {
      code: 'store-unavailable',
      message: 'device d0: The store cannot be read or written',
    })
    assert.deepEqual(hidden, [detail])
  })
})

describe('the connections of questions', () => {
  /** `seen` has the connection's number and the request line of each request. */
  async function stage(answer: (socket: Socket, request: number) => void) {
    const seen: string[] = []
    const sockets: Socket[] = []
    const server = createServer((socket) => {
      const connection = sockets.push(socket) - 1
      socket.on('error', () => undefined)
      socket.on('data', (bytes) => {
        const number = seen.push(`${connection} ${bytes.toString('latin1').split(' HTTP', 1)[0]}`) - 1
        answer(socket, number)
      })
    })
    await once(server.listen(0, '127.0.0.1'), 'listening')
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const device = new Device({ name: 'd0', url, user: 'u', password: new Secret('p') })
    const client = new DeviceClient(device, { connectTimeoutMs: 5_000, idleTimeoutMs: 5_000 })
    const dispose = () => {
      client.close()
      for (const socket of sockets) socket.destroy()
      server.close()
    }
    return { seen, sockets, client, [Symbol.dispose]: dispose }
  }
  const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'

  test('are kept, also after a refusal; who finds one closed asks again, but never for a change', async () => {
    const answers = [OK, OK.replace('200 OK', '404 No'), '', OK, OK, OK]
    using stand = await stage((socket, number) => {
      const text = answers[number] ?? ''
      if (text === '') socket.destroy()
      else socket.write(text)
    })
    const { client, seen } = stand
    assert.equal(await client.getText('/a', QUESTION), 'ok')
    await assert.rejects(client.getText('/b', QUESTION), { code: 'device-protocol' })
    assert.equal(await client.getText('/c', QUESTION), 'ok')
    const change = { ...QUESTION, isChange: true }
    for (const path of ['/change', '/change']) assert.equal(await client.getText(path, change), 'ok')
    await assert.rejects(client.getText('/lost', change), { code: 'device-unreachable' })
    assert.deepEqual(seen, [
      '0 GET /a',
      '0 GET /b',
      '0 GET /c',
      '1 GET /c',
      '2 GET /change',
      '3 GET /change',
      '4 GET /lost',
    ])
  })

  test('that break off inside an answer are not asked again: the device has done what it was asked', async () => {
    using stand = await stage((socket, number) => {
      if (number === 0) socket.write(OK)
      else socket.end('HTTP/1.1 200 OK\r\nContent-Le')
    })
    const { client, seen } = stand
    assert.equal(await client.getText('/a', QUESTION), 'ok')
    await assert.rejects(client.getText('/b', QUESTION), { code: 'device-unreachable' })
    assert.deepEqual(seen, ['0 GET /a', '0 GET /b'])
  })

  test('are at most 128 at a time; a free place goes to the user with the fewest', async () => {
    using stand = await stage(() => undefined)
    const { client, seen, sockets } = stand
    const leaving = new AbortController()
    const ask = (caller: string) =>
      client.getText(`/${caller}`, { bytesMax: 100, signal: leaving.signal, caller })
    const greedy = Array.from({ length: 200 }, () => ask('ann'))
    const asked = [...greedy, ask('bob')]
    for (const each of asked) each.catch(() => undefined)
    await eventually(() => seen.length === 128, { message: 'all places are taken' })
    sockets[0]?.write(OK)
    await eventually(() => seen.length === 129, { message: 'the next one is served' })
    assert.equal(seen.at(-1), '0 GET /bob')
    leaving.abort(new Error('nobody waits'))
    const ends = await Promise.allSettled(asked)
    assert.equal(ends.filter(({ status }) => status === 'rejected').length, 200)
    await eventually(() => sockets.every(({ destroyed }) => destroyed), { message: 'no connection is left' })
  })

  test('carry nothing to a device that has vanished, except for earlier requests', async () => {
    using stand = await stage((socket, number) => {
      if (number < 2) socket.write(OK)
    })
    const { client, seen, sockets } = stand
    const change = { ...QUESTION, isChange: true }
    assert.equal(await client.getText('/kept', QUESTION), 'ok')
    const running = client.getText('/change', change)
    assert.equal(await running, 'ok')
    const open = client.getText('/open', change)
    await eventually(() => seen.length === 3, { message: 'it has asked' })
    client.device.vanishedAt = new Date('2026-10-01T12:00:00Z')
    const refusal = {
      code: 'device-unreachable',
      message: 'device d0 is not used: its directory has not listed it since 2026-10-01T12:00:00.000Z',
    }
    // Over the kept connection, then over new ones.
    for (const path of ['/a', '/b']) await assert.rejects(client.getText(path, QUESTION), refusal)
    await assert.rejects(client.getText('/c', change), refusal)
    sockets[2]?.write(OK)
    assert.equal(await open, 'ok')
    client.device.vanishedAt = undefined
    const again = client.getText('/again', QUESTION)
    await eventually(() => seen.length === 4, { message: 'it has asked again' })
    sockets[3]?.write(OK)
    assert.equal(await again, 'ok')
    assert.deepEqual(seen, ['0 GET /kept', '1 GET /change', '2 GET /open', '3 GET /again'])
  })

  test('that are made when the device vanishes carry no login', async () => {
    using stand = await stage((socket) => socket.write(OK))
    const { client, seen, sockets } = stand
    const asked = client.openLive('/late', { caller: 'x', silenceMs: 5_000, signal: LIMIT.signal })
    client.device.vanishedAt = new Date()
    await assert.rejects(asked, { code: 'device-unreachable', message: /has not listed it since/ })
    await eventually(() => sockets[0]?.destroyed === true, { message: 'it is closed' })
    assert.deepEqual(seen, [])
  })

  test('end with the client, and there is no other', async () => {
    using stand = await stage(() => undefined)
    const { client, seen } = stand
    const asked = client.getText('/x', QUESTION)
    await eventually(() => seen.length === 1, { message: 'it has asked' })
    client.close()
    await assert.rejects(asked, { code: 'draining' })
    await assert.rejects(client.getText('/x', QUESTION), { code: 'draining' })
    assert.equal(seen.length, 1)
  })
})
