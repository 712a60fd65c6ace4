/** The Debian packages, built for a test from this checkout. */
import { execFile } from 'node:child_process'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { REPOSITORY_ROOT } from '../repository-files.ts'
import { type TempFolder, tempFolder } from '../temp-folder.ts'

const run = promisify(execFile)

export const PACKAGE_NAMES = ['capfleet-appliance', 'capfleet-client', 'capfleet-gateway'] as const
export type PackageName = (typeof PACKAGE_NAMES)[number]

/** Builds them all; `repository` is a checkout with its engine, and `isFast` is for tests of what is in them. */
export async function buildPackages(
  folder: string,
  { repository = REPOSITORY_ROOT, isFast = false } = {},
): Promise<void> {
  const args = [join(repository, '.ci/package.mjs'), '--out', folder, ...(isFast ? ['--fast'] : [])]
  await run(process.execPath, args, { cwd: repository })
}

/** Path of a package in a folder with one version of each. */
export async function archiveOf(name: PackageName, folder: string): Promise<string> {
  const found = (await readdir(folder)).find((file) => file.startsWith(`${name}_`) && file.endsWith('.deb'))
  if (found === undefined) throw new Error(`no package ${name} in ${folder}`)
  return join(folder, found)
}

/** Writes the packages of a folder to another one as the next version: other numbers around the same programs. */
export async function asVersion(version: string, folder: string, target: string): Promise<void> {
  await using work: TempFolder = await tempFolder()
  for (const name of PACKAGE_NAMES) {
    const tree = join(work.path, name)
    await run('dpkg-deb', ['--raw-extract', await archiveOf(name, folder), tree])
    const control = join(tree, 'DEBIAN/control')
    const text = await readFile(control, 'utf8')
    const [, old = ''] = /^Version: (.*)$/m.exec(text) ?? []
    await writeFile(
      control,
      text.replaceAll(`Version: ${old}`, `Version: ${version}`).replaceAll(`(= ${old})`, `(= ${version})`),
    )
    if (name === 'capfleet-client') {
      const path = join(tree, 'opt/capfleet/package.json')
      const manifest = JSON.parse(await readFile(path, 'utf8')) as Record<string, unknown>
      await writeFile(path, JSON.stringify({ ...manifest, version }))
    }
    await run('dpkg-deb', [
      '-Znone',
      '--root-owner-group',
      '--build',
      tree,
      join(target, `${name}_${version}.deb`),
    ])
  }
}
