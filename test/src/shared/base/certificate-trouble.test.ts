import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import type { AddressInfo } from 'node:net'
import { after, before, describe, test } from 'node:test'
import { connect, createServer, type SecureContextOptions, type TLSSocket } from 'node:tls'
import { certificateTrouble } from '../../../../src/shared/base/certificate-trouble.ts'
import { TempAuthority } from '../../../support/access/temp-authority.ts'

describe('the failure of a TLS connection', () => {
  const owned = new AsyncDisposableStack()
  let ca: Buffer
  let port = 0
  let others: TempAuthority
  const read = async ({ cert, key }: { cert: string; key: string }) => ({
    cert: await readFile(cert),
    key: await readFile(key),
  })

  before(async () => {
    const ours = owned.use(await TempAuthority.create())
    others = owned.use(await TempAuthority.create())
    ca = await readFile(ours.ca)
    const server = createServer({ ...(await read(await ours.issue('server'))), ca, requestCert: true })
    await once(server.listen(0, '127.0.0.1'), 'listening')
    owned.defer(() => void server.close())
    port = (server.address() as AddressInfo).port
  })
  after(() => owned.disposeAsync())

  const failureOf = async (options: SecureContextOptions & { servername?: string }): Promise<Error> => {
    const socket: TLSSocket = connect({ host: '127.0.0.1', port, ...options })
    socket.resume()
    const [error] = (await once(socket, 'error')) as [Error]
    return error
  }

  for (const maxVersion of ['TLSv1.2', 'TLSv1.3'] as const) {
    test(`is ours when the server misses our certificate: ${maxVersion}`, async () => {
      const missing = certificateTrouble(await failureOf({ ca, maxVersion }))
      assert.equal(missing?.whose, 'ours')
      assert.match(missing.reason, /^[\w/ ]*alert[\w ]*$/)
    })
  }

  test('is ours when the server says that it does not trust it', () => {
    const error = Object.assign(new Error('...'), {
      code: 'ERR_SSL_TLSV1_ALERT_UNKNOWN_CA',
      reason: 'tlsv1 alert unknown ca',
    })
    assert.deepEqual(certificateTrouble(error), { whose: 'ours', reason: 'tlsv1 alert unknown ca' })
  })

  test('is theirs if the certificate of the server cannot be verified, or has another name', async () => {
    assert.equal(certificateTrouble(await failureOf({ ca: await readFile(others.ca) }))?.whose, 'theirs')
    assert.equal(certificateTrouble(await failureOf({ ca, servername: 'elsewhere' }))?.whose, 'theirs')
  })

  test('does not name a flag of Node.js, which a user cannot set', () => {
    const message =
      'self-signed certificate; if the root CA is installed locally, try running Node.js with --use-system-ca'
    const error = Object.assign(new Error(message), { code: 'DEPTH_ZERO_SELF_SIGNED_CERT' })
    assert.equal(certificateTrouble(error)?.reason, 'self-signed certificate')
  })

  test('has nothing to do with certificates otherwise', () => {
    for (const error of [
      new Error('x'),
      Object.assign(new Error('x'), { code: 'ECONNREFUSED' }),
      'x',
      undefined,
    ])
      assert.equal(certificateTrouble(error), undefined)
  })
})
