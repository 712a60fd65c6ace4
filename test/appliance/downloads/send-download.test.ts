import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  type PacketSource,
  type SendOutcome,
  sendDownload,
} from '../../../appliance/downloads/send-download.ts'
import type { Reader } from '../../../appliance/downloads/stream-limit.ts'
import { Metrics } from '../../../src/shared/base/metrics.ts'
import { listen } from '../../../src/shared/http/http-server.ts'
import { createTempCertificate } from '../../support/access/temp-certificate.ts'
import { httpOpen } from '../../support/http-get.ts'

const chunk = () => ({ bytes: Buffer.alloc(1_048_576), release: () => undefined })
/** More than the buffers of the client and the server hold. */
const ENDLESS = { next: async () => chunk(), totals: () => ({}) } as unknown as PacketSource

// Node does not reset TLS sockets: it threw an exception that was not caught, and the program ended.
test('over TLS a client that does not read is cut off by a reset, too', async () => {
  await using certificate = await createTempCertificate()
  const outcome = Promise.withResolvers<SendOutcome>()
  const server = await listen(
    (_req, res) => {
      const leaving = new AbortController()
      res.once('close', () => leaving.abort())
      const sent = sendDownload(res, {
        download: ENDLESS,
        firstChunk: chunk(),
        reader: { bytes: 0n } as Reader,
        idleTimeoutMs: 300,
        slowAfterMs: 1_000_000,
        isWanted: () => false,
        countsDuplicates: false,
        partialElement: new Uint8Array(8),
        onDrained: () => undefined,
        signal: leaving.signal,
        revoked: undefined,
      })
      sent.then(outcome.resolve, outcome.reject)
    },
    { host: '127.0.0.1', port: 0, tls: certificate },
    new Metrics(),
  )
  try {
    using _idle = await httpOpen(server.url, { tls: { ca: certificate.ca } })
    assert.deepEqual(await outcome.promise, { kind: 'idle-timeout' })
  } finally {
    await server.close(0)
  }
})
