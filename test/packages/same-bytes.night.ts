// Everything that a release delivers, built twice: from another folder and with another umask it has the same bytes.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { chmod, copyFile, mkdir, readdir, readFile, symlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { buildPackages, PACKAGE_NAMES } from '../support/packages/built-packages.ts'
import { REPOSITORY_ROOT, repositoryFiles } from '../support/repository-files.ts'
import { tempFolder } from '../support/temp-folder.ts'

test('the packages are the same bytes from another folder', async () => {
  await using first = await tempFolder()
  await buildPackages(first.path)
  await using other = await tempFolder()
  const [copy, out] = [join(other.path, 'copy'), join(other.path, 'out')]
  const executable = new Set(programs())
  for (const path of repositoryFiles().filter((one) => !one.startsWith('test/'))) {
    await mkdir(dirname(join(copy, path)), { recursive: true })
    await copyFile(join(REPOSITORY_ROOT, path), join(copy, path))
    // As a checkout under another umask has them.
    await chmod(join(copy, path), executable.has(path) ? 0o700 : 0o600)
  }
  for (const path of ['.git', 'node_modules', 'dist-console', 'dist-docs', 'native/build'])
    await symlink(join(REPOSITORY_ROOT, path), join(copy, path))
  await buildPackages(out, { repository: copy })
  const names = (await readdir(first.path)).sort()
  assert.deepEqual((await readdir(out)).sort(), names)
  for (const name of names)
    assert.ok((await readFile(join(first.path, name))).equals(await readFile(join(out, name))), name)
  assert.equal(names.filter((name) => name.endsWith('.deb')).length, PACKAGE_NAMES.length)
})

/** Files that git keeps as programs. */
function programs(): readonly string[] {
  const listed = execFileSync('git', ['ls-files', '--stage'], { cwd: REPOSITORY_ROOT, encoding: 'utf8' })
  return [...listed.matchAll(/^100755 \S+ \d\t(.*)$/gm)].map(([, path = '']) => path)
}
