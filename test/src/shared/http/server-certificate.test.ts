import assert from 'node:assert/strict'
import { once } from 'node:events'
import { copyFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { connect } from 'node:tls'
import { CapfleetError } from '../../../../src/shared/base/error.ts'
import { Metrics } from '../../../../src/shared/base/metrics.ts'
import { listen } from '../../../../src/shared/http/http-server.ts'
import { pathsOf, readServerCertificate } from '../../../../src/shared/http/server-certificate.ts'
import { TempAuthority } from '../../../support/access/temp-authority.ts'
import { tempFolder } from '../../../support/temp-folder.ts'

test('reports when the certificate expires, not those of its issuers', async () => {
  await using authority = await TempAuthority.create()
  const files = await authority.issue('server', 1)
  const { endS, context } = await readServerCertificate(files)
  assert.ok(Math.abs(endS - Date.now() / 1_000 - 86_400) < 600, `${endS}`)
  assert.equal(context.minVersion, 'TLSv1.2')
  assert.deepEqual(pathsOf({ ...files, clientCa: authority.ca }), [files.cert, files.key, authority.ca])
})

test('refuses files that cannot be used together, by the name of the setting', async () => {
  await using authority = await TempAuthority.create()
  await using folder = await tempFolder()
  const [files, others] = [await authority.issue('server'), await authority.issue('other')]
  const empty = join(folder.path, 'empty.pem')
  await writeFile(empty, '')
  for (const [what, broken] of [
    ['a key of another certificate', { ...files, key: others.key }],
    ['no certificate', { ...files, cert: empty }],
    ['no key', { ...files, key: empty }],
    ['a key for a certificate', { ...files, cert: files.key }],
    ['nobody who vouches for clients', { ...files, clientCa: empty }],
    ['a file that is not there', { ...files, clientCa: join(folder.path, 'nowhere.pem') }],
  ] as const) {
    await assert.rejects(
      readServerCertificate(broken),
      (error) =>
        error instanceof CapfleetError && error.code === 'bad-config' && /listen\.tls/.test(error.message),
      what,
    )
  }
})

test('a server keeps its certificate if the new files cannot be used, and takes the next', async () => {
  await using authority = await TempAuthority.create()
  await using folder = await tempFolder()
  const tls = { cert: join(folder.path, 'cert.pem'), key: join(folder.path, 'key.pem') }
  const replace = async (name: string) => {
    const { cert, key } = await authority.issue(name)
    await copyFile(cert, tls.cert)
    return () => copyFile(key, tls.key)
  }
  await (await replace('first'))()
  const server = await listen((_req, res) => res.end(), { host: '127.0.0.1', port: 0, tls }, new Metrics())
  const shown = async () => {
    const socket = connect({ port: Number(new URL(server.url).port), rejectUnauthorized: false })
    await once(socket, 'secureConnect')
    const { CN } = socket.getPeerCertificate().subject
    socket.destroy()
    return CN
  }
  try {
    const putKey = await replace('second')
    await assert.rejects(server.reloadCertificate(), /listen\.tls/)
    assert.equal(await shown(), 'first')
    await putKey()
    await server.reloadCertificate()
    assert.equal(await shown(), 'second')
  } finally {
    await server.close(0)
  }
})
