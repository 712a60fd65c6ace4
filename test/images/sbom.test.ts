// The bill of materials of an image lists its contents, in the format of CycloneDX.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdir, symlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { type Sbom, sbomMistakes, WITHOUT_PYTHON_TOOLS } from '../support/images/sbom.ts'
import { REPOSITORY_ROOT } from '../support/repository-files.ts'
import { tempFolder } from '../support/temp-folder.ts'

/** Koa is a development package, too. */
const RUN_TIME = ['zod', '@koa/router', 'commander', 'koa']

/** A root with the Debian packages of this machine and these npm packages. */
async function sbomOf(packages: readonly string[]) {
  await using root = await tempFolder()
  await mkdir(join(root.path, 'var/lib'), { recursive: true })
  await symlink('/var/lib/dpkg', join(root.path, 'var/lib/dpkg'))
  for (const name of packages) {
    const path = join(root.path, 'opt/capfleet/node_modules', name)
    await mkdir(dirname(path), { recursive: true })
    await symlink(join(REPOSITORY_ROOT, 'node_modules', name), path)
  }
  return spawnSync(
    process.execPath,
    [join(REPOSITORY_ROOT, '.ci/sbom.mjs'), 'capfleet/gateway:1', root.path],
    {
      encoding: 'utf8',
      maxBuffer: 64 << 20,
    },
  )
}

test('names the packages of npm and of Debian that are there, and no other', {
  skip: WITHOUT_PYTHON_TOOLS,
}, async () => {
  const { stdout, stderr } = await sbomOf(RUN_TIME)
  assert.equal(stderr, '')
  assert.equal(sbomMistakes(stdout), '')
  const { metadata, components } = JSON.parse(stdout) as Sbom
  assert.equal(metadata.component.name, 'capfleet/gateway:1')
  const ofNpm = components
    .filter(({ purl }) => purl.startsWith('pkg:npm/'))
    .map(({ purl }) => purl.replace(/@[^@]*$/, ''))
  assert.deepEqual(ofNpm.sort(), ['pkg:npm/%40koa/router', 'pkg:npm/commander', 'pkg:npm/koa', 'pkg:npm/zod'])
  const libc = components.find(({ name }) => name === 'libc6')
  assert.match(libc?.purl ?? '', /^pkg:deb\/debian\/libc6@2\.\S+\?arch=\w+$/)
})

test('is refused for an image with a package that the lock file has for development alone', async () => {
  const { status, stderr } = await sbomOf(['commander', 'fast-check'])
  assert.equal(status, 1)
  assert.match(stderr, /not in package-lock\.json for more than development: fast-check@/)
})

test('a mistake in it is seen', { skip: WITHOUT_PYTHON_TOOLS }, async () => {
  const { stdout } = await sbomOf(RUN_TIME)
  assert.match(sbomMistakes(stdout.replace('"type": "library"', '"type": "libary"')), /components\/0\/type/)
})
