// What can be packed for an architecture without a machine of it: the client, which has no engine. Packages of Node.js
// for it are downloaded.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { open, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { archiveOf } from '../support/packages/built-packages.ts'
import { REPOSITORY_ROOT } from '../support/repository-files.ts'
import { tempFolder } from '../support/temp-folder.ts'

const run = promisify(execFile)
const [OTHER, OTHER_NODE, MACHINE] =
  process.arch === 'x64' ? (['arm64', 'arm64', 183] as const) : (['amd64', 'x64', 62] as const)
/** Where an ELF file has the number of its machine. */
const MACHINE_AT = 18

async function machineOf(path: string): Promise<number> {
  await using file = await open(path)
  const { buffer } = await file.read(Buffer.alloc(2), 0, 2, MACHINE_AT)
  return buffer.readUInt16LE()
}

test(`the client is packed for ${OTHER}, and it is said what is not`, async () => {
  await using out = await tempFolder()
  const args = [join(REPOSITORY_ROOT, '.ci/package.mjs'), '--arch', OTHER, '--out', out.path]
  const { stdout, stderr } = await run(process.execPath, args, { cwd: REPOSITORY_ROOT })
  assert.match(
    stdout + stderr,
    /only the client is packed for .*capfleet-appliance and capfleet-gateway need --native/,
  )
  const archives = (await readdir(out.path)).filter((name) => name.endsWith('.deb'))
  assert.equal(archives.length, 1)
  const archive = await archiveOf('capfleet-client', out.path)
  const field = async (key: string) => (await run('dpkg-deb', ['--field', archive, key])).stdout.trim()
  assert.equal(await field('Architecture'), OTHER)
  const [tree, executables] = [join(out.path, 'tree'), join(out.path, 'executables')]
  await run('dpkg-deb', ['--extract', archive, tree])
  const home = join(tree, 'opt/capfleet/node_modules')
  assert.equal(await machineOf(join(home, '.bin/node')), MACHINE)
  assert.ok(!(await readdir(home)).includes(`node-linux-${process.arch}`))
  const [packed = ''] = (await readdir(out.path)).filter((name) => name.endsWith(`linux_${OTHER}.tar.gz`))
  await run('mkdir', [executables])
  await run('tar', ['-xzf', join(out.path, packed), '-C', executables, '--strip-components=1'])
  assert.equal(await machineOf(join(executables, 'capfleet')), MACHINE)
  assert.ok((await readdir(join(executables, 'licenses'))).includes(`node-linux-${OTHER_NODE}`))
})
