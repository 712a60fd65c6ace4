// There are no settings for a trace collector and an S3 with a private CA: NODE_EXTRA_CA_CERTS is enough.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { after, before, describe, test } from 'node:test'
import { createTempCertificate, type TempCertificate } from '../../support/access/temp-certificate.ts'
import { REPOSITORY_ROOT } from '../../support/repository-files.ts'

describe('a private authority', () => {
  const parts = new AsyncDisposableStack()
  const asked: string[] = []
  let certificate: TempCertificate
  let address: string

  before(async () => {
    certificate = parts.use(await createTempCertificate())
    const [cert, key] = await Promise.all([readFile(certificate.cert), readFile(certificate.key)])
    const server = createServer({ cert, key }, ({ method, url }, answer) => {
      asked.push(`${method} ${url}`)
      answer.end()
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    parts.defer(() => void server.close())
    parts.defer(() => server.closeAllConnections())
    address = `https://127.0.0.1:${(server.address() as AddressInfo).port}`
  })
  after(() => parts.disposeAsync())

  for (const [what, path, refused, script] of [
    [
      'the collector of traces',
      'POST /v1/traces',
      /^tracing\.not-sent$/m,
      `import { SpanExporter } from '${REPOSITORY_ROOT}src/shared/base/span-exporter.ts'
       import { Metrics } from '${REPOSITORY_ROOT}src/shared/base/metrics.ts'
       const tell = (event) => console.log(event)
       const log = { debug: tell, info: tell, warn: tell, error: tell }
       const endpoint = process.env.ADDRESS + '/v1/traces'
       await using exporter = new SpanExporter({ endpoint, ratio: 1, version: '1', log, metrics: new Metrics() })
       exporter.add({ name: 'GET /', kind: 'server', trace: { traceId: 'a', spanId: 'b', state: '' }, startMs: 1, endMs: 2, attributes: {} })`,
    ],
    [
      'S3',
      'HEAD /captures',
      /^the target archive cannot be used: S3 answered [^;]+ \(set NODE_EXTRA_CA_CERTS to trust a private authority\)/,
      `import { S3Target } from '${REPOSITORY_ROOT}src/gateway/export/target/s3-target.ts'
       import { Secret } from '${REPOSITORY_ROOT}src/shared/base/secret.ts'
       const credentials = { accessKeyId: 'key', secretAccessKey: new Secret('secret') }
       const target = new S3Target('archive', { bucket: 'captures', prefix: '', endpoint: process.env.ADDRESS, region: 'eu', credentials })
       await target.check().catch((error) => console.log(error.message))
       process.exit()`,
    ],
  ] as const) {
    const run = (environment: Record<string, string>): Promise<string> =>
      new Promise((resolve) => {
        const env = { ...process.env, ADDRESS: address, ...environment }
        execFile(process.execPath, ['--input-type=module', '-e', script], { env }, (_error, said) =>
          resolve(said),
        )
      })

    test(`of ${what} is trusted by the environment alone`, async () => {
      assert.match(await run({}), refused)
      assert.deepEqual(
        asked.filter((one) => one.startsWith(path)),
        [],
      )
      assert.equal(await run({ NODE_EXTRA_CA_CERTS: certificate.cert }), '')
      assert.equal(asked.filter((one) => one.startsWith(path)).length, 1)
    })
  }
})
