import assert from 'node:assert/strict'
import { stat, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { test } from 'node:test'
import { exportTargetsSchema, openTargets } from '../../../../../src/gateway/export/target/export-targets.ts'
import { tempFolder } from '../../../../support/temp-folder.ts'

const DIRECTORY = { name: 'nas', type: 'directory', path: 'exports' }
const S3 = { name: 'cloud', type: 's3', bucket: 'captures', region: 'eu-central-1' }
const KEYS = { accessKeyId: 'key', secretAccessKey: { file: 'secret' } }

function problems(...targets: readonly unknown[]): string[] {
  const { error } = exportTargetsSchema.safeParse(targets)
  return (error?.issues ?? []).map(({ path, message }) => `${path.join('.')}: ${message}`)
}

test('folders and buckets are taken', () => {
  const endpoint = 'https://s3.example.com:9000'
  assert.deepEqual(problems(), [])
  assert.deepEqual(problems(DIRECTORY, S3, { ...S3, ...KEYS, name: 'other', endpoint, prefix: 'a/b.c/' }), [])
})

for (const [what, target, said] of [
  ['another type', { ...DIRECTORY, type: 'ftp' }, /^0\.type: /],
  ['a setting that nobody knows', { ...DIRECTORY, bucket: 'x' }, /^0: Unrecognized key/],
  ['a name that a query cannot have', { ...DIRECTORY, name: 'a b' }, /^0\.name: must be 1 to 64/],
  ['a prefix without its slash', { ...S3, prefix: 'captures' }, /^0\.prefix: must be folders/],
  ['a prefix that begins with a slash', { ...S3, prefix: '/captures/' }, /^0\.prefix: must be folders/],
  ['a prefix that leads nowhere', { ...S3, prefix: 'a//b/' }, /^0\.prefix: must be folders/],
  ['an endpoint with a password', { ...S3, endpoint: 'https://a:b@s3.example.com' }, /^0\.endpoint: /],
  ['an endpoint of another scheme', { ...S3, endpoint: 'ftp://s3.example.com' }, /^0\.endpoint: /],
  ['a key without its secret', { ...S3, accessKeyId: 'key' }, /^0\.secretAccessKey: belongs to/],
  ['a secret in the open', { ...S3, ...KEYS, secretAccessKey: 'secret' }, /^0\.secretAccessKey: /],
] as const) {
  test(`${what} is refused`, () => {
    const [problem = '', ...more] = problems(target)
    assert.match(problem, said)
    assert.deepEqual(more, [])
  })
}

test('a name that comes twice is refused', () => {
  assert.deepEqual(problems(DIRECTORY, { ...S3, name: 'nas' }), [
    '1.name: "nas" is already the name of exports.targets[0]',
  ])
})

function isSdkLoaded(): boolean {
  return Object.keys(createRequire(import.meta.url).cache).some((path) => path.includes('@aws-sdk'))
}

test('targets are opened in their order, beside the configuration, and the SDK is loaded for S3 alone', async () => {
  await using folder = await tempFolder()
  const configPath = join(folder.path, 'gateway.yaml')
  await writeFile(join(folder.path, 'secret'), 'open sesame\n')
  const [nas] = await openTargets(exportTargetsSchema.parse([DIRECTORY]), configPath).then((all) =>
    all.values(),
  )
  await nas?.check()
  assert.ok((await stat(join(folder.path, 'exports'))).isDirectory())
  assert.equal(isSdkLoaded(), false)
  const both = await openTargets(exportTargetsSchema.parse([{ ...S3, ...KEYS }, DIRECTORY]), configPath)
  assert.deepEqual([...both.keys()], ['cloud', 'nas'])
  assert.equal(isSdkLoaded(), true)
})

test('a secret that is not there names its setting', async () => {
  const settings = exportTargetsSchema.parse([DIRECTORY, { ...S3, ...KEYS }])
  await assert.rejects(openTargets(settings, '/nowhere/gateway.yaml'), {
    code: 'bad-config',
    message: /^exports\.targets\[1\]\.secretAccessKey: cannot read/,
  })
})
