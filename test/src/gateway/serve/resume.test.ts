// Resume= and Offset=: the client's part and what it gets then are together the whole file.
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { describe, test } from 'node:test'
import type { FakeDevice } from '../../../support/devices/fake-device.ts'
import { FLEET_RANGE, fleetPcap } from '../../../support/devices/fake-fleet.ts'
import { eventually } from '../../../support/eventually.ts'
import { type HttpAnswer, httpGet, httpOpen } from '../../../support/http-get.ts'
import { readPcap, recordLines } from '../../../support/packets/pcap-records.ts'
import { gatewayWorld } from '../../../support/processes/gateway-world.ts'
import { seededRandom } from '../../../support/seeded-random.ts'

const RANDOM = seededRandom()
const PACKETS = 700
const PATH = '/api/v1/pcap/timerange'
const TIMERANGE = `${PATH}?${FLEET_RANGE}`
/** The bytes that a cut adds after the packets of a merge. */
const MARK_BYTES = 8

interface CutFile {
  readonly id: string
  readonly bytes: Buffer
}

describe('resume', () => {
  const world = gatewayWorld(PACKETS)
  const { fleet } = world

  const get = (path: string, as: 'user' | 'full' = 'user') =>
    httpGet(world.gateway.url + path, { headers: world.gateway.as[as] })
  const whole = async (path: string) => (await get(path)).body
  const first = (): FakeDevice => fleet[0] as FakeDevice

  /** Reads until the answer breaks off, or leaves after this many bytes. */
  async function getCut(path: string, leaveAfterBytes = Infinity): Promise<CutFile> {
    using answer = await httpOpen(world.gateway.url + path, { headers: world.gateway.as.user })
    const chunks: Buffer[] = []
    let bytes = 0
    try {
      for await (const chunk of answer.response) {
        chunks.push(chunk)
        bytes += chunk.length
        if (bytes >= leaveAfterBytes) break
      }
    } catch {}
    return {
      id: String(answer.response.headers['capfleet-request-id']),
      bytes: Buffer.concat(chunks).subarray(0, Math.min(bytes, leaveAfterBytes)),
    }
  }

  function assertBadParameter(answer: HttpAnswer, param: string, detail: RegExp): void {
    const problem = answer.json()
    assert.deepEqual([answer.status, problem.code, problem.param], [400, 'bad-parameter', param])
    assert.match(String(problem.detail), detail)
  }

  test(`any size of the file of a relay, continued by Offset, makes the same file (SEED=${RANDOM.seed})`, async () => {
    const path = `/devices/d0${TIMERANGE}`
    const { body: expected, headers } = await get(path)
    const sizes = [0, 1, 23, 24, 25, expected.length - 1, expected.length]
    for (let round = 0; round < 12; round += 1) sizes.push(RANDOM.integer(0, expected.length))
    for (const size of sizes) {
      const rest = await get(`${path}&Resume=${headers['capfleet-request-id']}&Offset=${size}`)
      assert.equal(rest.status, 200, rest.body.toString())
      assert.ok(Buffer.concat([expected.subarray(0, size), rest.body]).equals(expected), `size ${size}`)
    }
  })

  test('a client that left continues at what it has', async () => {
    const path = `/devices/d0${TIMERANGE}`
    const expected = await whole(path)
    first().behaviour = { chunkBytes: 1_500, pauseMs: 1 }
    const cut = await getCut(path, 30_000)
    first().behaviour = {}
    const rest = await get(`${path}&Resume=${cut.id}&Offset=${cut.bytes.length}`)
    assert.ok(Buffer.concat([cut.bytes, rest.body]).equals(expected))
  })

  test('a relay that was cut inside a record continues at the size of the file', async () => {
    const path = `/devices/d0${TIMERANGE}`
    const expected = await whole(path)
    first().behaviour = { dieAfterBytes: expected.length - 5_001 }
    const cut = await getCut(path)
    first().behaviour = {}
    const rest = await get(`/devices/d0${PATH}?Resume=${cut.id}&Offset=${cut.bytes.length}`)
    assert.ok(Buffer.concat([cut.bytes, rest.body]).equals(expected))
  })

  test('bytes that mark the cut are no part of the file: the answer says how to take them off', async () => {
    const path = `/devices/d0${TIMERANGE}`
    const expected = await whole(path)
    const boundary = fleetPcap(0, 300).length
    first().behaviour = { dieAfterBytes: boundary }
    const cut = await getCut(path)
    assert.equal(cut.bytes.length, boundary + MARK_BYTES)
    first().behaviour = {}
    const refused = await get(`${path}&Resume=${cut.id}&Offset=${cut.bytes.length}`)
    assertBadParameter(refused, 'Offset', new RegExp(`truncate -s ${boundary} .*Offset=${boundary}`))
    const rest = await get(`${path}&Resume=${cut.id}&Offset=${boundary}`)
    assert.ok(Buffer.concat([cut.bytes.subarray(0, boundary), rest.body]).equals(expected))
  })

  test('without Offset a download that we cut continues as a new file: no packet lost, none twice', async () => {
    const path = `/devices/d0${TIMERANGE}`
    const expected = recordLines(readPcap(await whole(path)).records)
    for (const [dieAfterBytes, delivered] of [
      [24, 0],
      [24 + 5, 0],
      [fleetPcap(0, 300).length, 300],
      [fleetPcap(0, 300).length + 20, 300],
    ] as const) {
      first().behaviour = { dieAfterBytes }
      const cut = await getCut(path)
      first().behaviour = {}
      const rest = await get(`/devices/d0${PATH}?Resume=${cut.id}`)
      assert.deepEqual(recordLines(readPcap(rest.body).records), expected.slice(delivered))
    }
  })

  test('a continuation that is cut can be continued itself, in both forms', async () => {
    const path = `/devices/d0${TIMERANGE}`
    const expected = await whole(path)
    const lines = recordLines(readPcap(expected).records)
    first().behaviour = { dieAfterBytes: fleetPcap(0, 200).length + 7 }
    const cut = await getCut(path)
    first().behaviour = { dieAfterBytes: fleetPcap(0, 400).length + 7 }
    const second = await getCut(`${path}&Resume=${cut.id}`)
    const third = await getCut(`${path}&Resume=${cut.id}&Offset=${cut.bytes.length}`)
    first().behaviour = {}
    const newFile = await get(`${path}&Resume=${second.id}`)
    assert.deepEqual(recordLines(readPcap(newFile.body).records), lines.slice(400))
    const sameFile = await get(`${path}&Resume=${second.id}&Offset=${second.bytes.length}`)
    const joined = readPcap(Buffer.concat([second.bytes, sameFile.body]))
    assert.deepEqual(recordLines(joined.records), lines.slice(200))
    const have = Buffer.concat([cut.bytes, third.bytes])
    const appended = await get(`${path}&Resume=${third.id}&Offset=${have.length}`)
    assert.ok(Buffer.concat([have, appended.body]).equals(expected))
  })

  test('the digest and the receipt are those of the continuation', async () => {
    const path = `/devices/d0${TIMERANGE}`
    const { id } = await getCut(path, 2_000)
    const rest = await get(`${path}&Resume=${id}&Offset=2000&Digest=sha256`)
    const receipt = (await get(`/v1/requests/${rest.headers['capfleet-request-id']}`)).json()
    assert.equal(receipt.resumedId, id)
    assert.equal(receipt.bytes, String(rest.body.length))
    assert.equal(receipt.sha256, createHash('sha256').update(rest.body).digest('hex'))
  })

  test('relative times mean those of the first request', async () => {
    const relative = `/devices/d0${PATH}?TSBegin=-1h&TSEnd=now`
    const { id } = await getCut(relative, 2_000)
    await get(`${relative}&Resume=${id}&Offset=100`)
    const asked = first()
      .requests.map(({ url }) => url)
      .filter((url) => url.startsWith('/api/v1/pcap/timerange'))
    assert.equal(asked.at(-1), `${asked.at(-2)}&After=24`)
  })

  test('packets that were overwritten meanwhile: 410 before the first byte', async () => {
    const path = `/devices/d0${TIMERANGE}`
    const expected = await whole(path)
    first().behaviour = { dieAfterBytes: expected.length - 5_001 }
    const cut = await getCut(path)
    const trimmed = Buffer.concat([expected.subarray(0, 24), expected.subarray(fleetPcap(0, 3).length)])
    for (const body of [trimmed, trimmed.subarray(0, 24)]) {
      first().behaviour = { body }
      const answer = await get(`${path}&Resume=${cut.id}&Offset=${cut.bytes.length}`)
      assert.deepEqual([answer.status, answer.json().code], [410, 'aged-out'])
    }
  })

  test('packets that were overwritten after the position: the continuation is cut, visibly', async () => {
    const path = `/devices/d0${TIMERANGE}`
    const expected = await whole(path)
    first().behaviour = { dieAfterBytes: expected.length - 5_001 }
    const cut = await getCut(path)
    const changed = Buffer.from(expected)
    readPcap(changed).records.at(-30)?.captured.fill(0)
    first().behaviour = { body: changed }
    const rest = await getCut(`${path}&Resume=${cut.id}&Offset=${cut.bytes.length - 40_000}`)
    const receipt = (await get(`/v1/requests/${rest.id}`)).json()
    assert.deepEqual([receipt.status, (receipt.error as { code: string }).code], ['failed', 'aged-out'])
  })

  test('a device that cannot begin inside a download is not read again from its first byte', async () => {
    const path = `/devices/d0${TIMERANGE}`
    const { id } = await getCut(path, 50_000)
    first().behaviour = { cannotSkip: true }
    const answer = await get(`${path}&Resume=${id}&Offset=50000`)
    assert.deepEqual([answer.status, answer.json().code], [501, 'not-implemented'])
    assert.match(String(answer.json().detail), /d0 cannot start inside a download .*TSBegin/)
    first().behaviour = {}
    assert.equal((await get(`${path}&Resume=${id}&Offset=50000`)).status, 200)
  })

  test('only the user of the request may continue it', async () => {
    const { id } = await getCut(`/devices/d0${TIMERANGE}`, 2_000)
    const answer = await get(`/devices/d0${TIMERANGE}&Resume=${id}&Offset=0`, 'full')
    assert.deepEqual([answer.status, answer.json().code], [404, 'unknown-request'])
  })

  test('what cannot be continued is refused with the way out', async () => {
    const path = `/devices/d0${TIMERANGE}`
    const { id } = await getCut(path, 2_000)
    assertBadParameter(await get(`${path}&Resume=${id}`), 'Resume', /Offset=<size of your file/)
    assertBadParameter(
      await get(`${path}&Resume=${id}&Offset=99999999`),
      'Offset',
      /truncate -s|has \d+ bytes/,
    )
    assertBadParameter(await get(`${path}&Slice=64&Resume=${id}&Offset=0`), 'Resume', /repeat that address/)
    assertBadParameter(await get(`${TIMERANGE}&Resume=${id}&Offset=0`), 'Resume', /repeat that address/)
    const zipped = await get(`${TIMERANGE}&Compression=fast`)
    const zippedId = zipped.headers['capfleet-request-id']
    assertBadParameter(
      await get(`${TIMERANGE}&Compression=fast&Resume=${zippedId}&Offset=0`),
      'Resume',
      /Compression=none/,
    )
  })
})

describe('resume after a client that read nothing was cut off', () => {
  // More than fits into the buffers between the gateway and the client.
  const world = gatewayWorld(60_000, { downloads: { clientIdleTimeoutMs: 300 } })

  for (const path of [`/devices/d0${TIMERANGE}`, TIMERANGE])
    test(`${path}: only the client knows how much came`, async () => {
      const { url, as } = world.gateway
      using idle = await httpOpen(url + path, { headers: as.user })
      const id = String(idle.response.headers['capfleet-request-id'])
      const receipt = async () => (await httpGet(`${url}/v1/requests/${id}`, { headers: as.user })).json()
      const isCut = async () => (await receipt()).status === 'failed'
      await eventually(isCut, { message: 'it is cut' })
      const alone = await httpGet(`${url}${path}&Resume=${id}`, { headers: as.user })
      assert.deepEqual([alone.status, alone.json().param], [400, 'Resume'])
    })
})
