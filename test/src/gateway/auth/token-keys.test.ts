import assert from 'node:assert/strict'
import { generateKeyPairSync, type KeyObject, randomBytes } from 'node:crypto'
import { mkdir, readdir, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { TokenKeys } from '../../../../src/gateway/auth/token-keys.ts'
import type { Log } from '../../../../src/shared/base/log.ts'
import { tempFolder } from '../../../support/temp-folder.ts'

const NOTHING = () => undefined
const LOG: Log = { debug: NOTHING, info: NOTHING, warn: NOTHING, error: NOTHING }

test('a gateway without keys makes one that is for it alone, and keeps it', async () => {
  await using home = await tempFolder()
  const folder = join(home.path, 'token-keys')
  const options = { folder, makesFirst: true, log: LOG }
  const { kid, algorithm, signs } = (await TokenKeys.open(options)).newest
  assert.equal(algorithm, 'ES256')
  const [file = ''] = await readdir(folder)
  assert.deepEqual(
    [(await stat(folder)).mode & 0o777, (await stat(join(folder, file))).mode & 0o777],
    [0o700, 0o600],
  )
  const again = (await TokenKeys.open(options)).newest
  assert.ok(again.kid === kid && again.signs.equals(signs))
})

test('a folder that the configuration names is not filled: replicas would have different keys', async () => {
  await using folder = await tempFolder()
  const open = (path: string) => TokenKeys.open({ folder: path, makesFirst: false, log: LOG })
  await assert.rejects(open(folder.path), { code: 'bad-config', message: /has no usable key/ })
  await assert.rejects(open(join(folder.path, 'away')), { code: 'bad-config', message: /cannot read/ })
})

for (const [what, file, bytes] of [
  ['an RSA key of 1024 bits', 'a.pem', pem(generateKeyPairSync('rsa', { modulusLength: 1_024 }))],
  ['another curve', 'a.pem', pem(generateKeyPairSync('ec', { namedCurve: 'secp256k1' }))],
  ['an Ed25519 key', 'a.pem', pem(generateKeyPairSync('ed25519'))],
  ['a public key', 'a.pem', generateKeyPairSync('ed25519').publicKey.export({ type: 'spki', format: 'pem' })],
  ['31 bytes', 'a.secret', randomBytes(31)],
  ['31 bytes of text and a line end', 'a.secret', Buffer.from(`${'a'.repeat(31)}\n`)],
  ['a name with a space', 'a b.secret', Buffer.alloc(32, 1)],
  ['a hidden file', '.a.secret', Buffer.alloc(32, 1)],
  ['another ending', 'a.pem.old', Buffer.alloc(32, 1)],
] as const) {
  test(`is no key: ${what}`, async () => {
    await using folder = await tempFolder()
    await writeFile(join(folder.path, 'b.secret'), randomBytes(32))
    await writeFile(join(folder.path, file), bytes)
    const keys = await TokenKeys.open({ folder: folder.path, makesFirst: false, log: LOG })
    assert.equal(keys.newest.kid, 'b')
    assert.equal(keys.find('a'), undefined)
  })
}

for (const [what, bytes, length] of [
  ['bytes', Buffer.concat([Buffer.alloc(31, 1), Buffer.from('\n')]), 32],
  ['bytes and a line end of two', Buffer.concat([Buffer.alloc(30, 255), Buffer.from('\r\n')]), 32],
  ['text and a line end', Buffer.from(`${'a'.repeat(32)}\n`), 32],
  ['text and a line end of two', Buffer.from(`${'a'.repeat(32)}\r\n`), 32],
  ['text with lines', Buffer.from(`${'a'.repeat(16)}\n${'b'.repeat(16)}\n`), 34],
] as const) {
  test(`a line end is not part of a secret, but only after text: ${what}`, async () => {
    await using folder = await tempFolder()
    await writeFile(join(folder.path, 'a.secret'), bytes)
    const { signs } = (await TokenKeys.open({ folder: folder.path, makesFirst: false, log: LOG })).newest
    assert.equal(signs.symmetricKeySize, length)
  })
}

test('of two keys with one name the first counts, and a folder is not a key', async () => {
  await using folder = await tempFolder()
  await writeFile(join(folder.path, 'a.pem'), pem(generateKeyPairSync('ec', { namedCurve: 'secp384r1' })))
  await writeFile(join(folder.path, 'a.secret'), randomBytes(32))
  await mkdir(join(folder.path, 'b.pem'))
  const keys = await TokenKeys.open({ folder: folder.path, makesFirst: false, log: LOG })
  assert.deepEqual(keys.find('a')?.algorithms, ['ES384'])
  assert.equal(keys.newest.kid, 'a')
})

function pem({ privateKey }: { readonly privateKey: KeyObject }): string {
  return String(privateKey.export({ type: 'pkcs8', format: 'pem' }))
}
