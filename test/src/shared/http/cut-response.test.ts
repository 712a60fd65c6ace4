import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type TestContext, test } from 'node:test'
import { cutResponse } from '../../../../src/shared/http/cut-response.ts'
import { httpOpen } from '../../../support/http-get.ts'

/** Serves a whole PCAP of one packet, then cuts with `partial`. */
async function cuttingServer(t: TestContext, partial: Uint8Array): Promise<string> {
  const pcap = Buffer.alloc(24 + 16 + 60)
  pcap.writeUInt32LE(0xa1b23c4d, 0)
  pcap.writeUInt16LE(2, 4)
  pcap.writeUInt16LE(4, 6)
  pcap.writeUInt32LE(262144, 16)
  pcap.writeUInt32LE(1, 20)
  pcap.writeUInt32LE(60, 32)
  pcap.writeUInt32LE(60, 36)
  const server = createServer((_req, res: ServerResponse) => {
    res.write(pcap)
    void cutResponse(res, partial)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => server.close())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
}

/** Exit codes of curl and tcpdump in `curl | tcpdump`. */
function pipeline(url: string, curlOption: string): Promise<{ curl: number; tcpdump: number }> {
  const script = `curl -sS ${curlOption} '${url}' 2>/dev/null | tcpdump -nr - >/dev/null 2>&1; echo "\${PIPESTATUS[0]} \${PIPESTATUS[1]}"`
  return new Promise((resolve, reject) => {
    execFile('bash', ['--norc', '-c', script], (error, stdout) => {
      if (error) return reject(error)
      const [curl = Number.NaN, tcpdump = Number.NaN] = stdout.trim().split(' ').map(Number)
      resolve({ curl, tcpdump })
    })
  })
}

test('an HTTP/1.1 client sees a reset, and tcpdump the cut', async (t) => {
  assert.deepEqual(await pipeline(await cuttingServer(t, new Uint8Array(8)), ''), { curl: 56, tcpdump: 1 })
})

test('an HTTP/1.0 client sees a reset, and tcpdump the cut', async (t) => {
  assert.deepEqual(await pipeline(await cuttingServer(t, new Uint8Array(8)), '--http1.0'), {
    curl: 56,
    tcpdump: 1,
  })
})

test('without the partial record tcpdump would be deceived', async (t) => {
  assert.deepEqual(await pipeline(await cuttingServer(t, new Uint8Array(0)), ''), { curl: 56, tcpdump: 0 })
})

test('a client that reads late gets all that was written, then the reset; only then is it handed over', async (t) => {
  // More than the buffers of both kernels hold.
  const body = Buffer.alloc(32 * 1_048_576)
  let isHanded = false
  let isCut: Promise<void> | undefined
  const server = createServer((_req, res) => {
    res.write(body)
    isCut = cutResponse(res, new Uint8Array(8), {
      onHanded: () => {
        isHanded = true
      },
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => server.close())
  using answer = await httpOpen(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`)
  assert.equal(isHanded, false)
  let bytes = 0
  const read = async (): Promise<void> => {
    for await (const chunk of answer.response) bytes += (chunk as Buffer).length
  }
  await assert.rejects(read(), { code: 'ECONNRESET' })
  await isCut
  assert.deepEqual([bytes, isHanded], [body.length + 8, true])
})

test('a client that leaves during the cut has nothing handed over', async (t) => {
  let isHanded = false
  const cut = Promise.withResolvers<void>()
  const server = createServer((_req, res) => {
    res.write(Buffer.alloc(32 * 1_048_576))
    cut.resolve(
      cutResponse(res, new Uint8Array(8), {
        onHanded: () => {
          isHanded = true
        },
      }),
    )
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => server.close())
  const answer = await httpOpen(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`)
  answer[Symbol.dispose]()
  await cut.promise
  assert.equal(isHanded, false)
})
