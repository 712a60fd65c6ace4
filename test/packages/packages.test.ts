// The Debian packages without installing them: what is in them, and what they ask of the machine.
import assert from 'node:assert/strict'
import { execFile, execFileSync } from 'node:child_process'
import { chmod, mkdir, readdir, readFile, symlink, utimes, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { promisify } from 'node:util'
import { buildArchive } from '../../.ci/package/debian-archive.mjs'
import { CLIENT_COMMANDS } from '../../src/client/command/client-commands.ts'
import { type Sbom, sbomMistakes, WITHOUT_PYTHON_TOOLS } from '../support/images/sbom.ts'
import {
  archiveOf,
  buildPackages,
  PACKAGE_NAMES,
  type PackageName,
} from '../support/packages/built-packages.ts'
import { startSmallFleet } from '../support/processes/small-fleet.ts'
import { REPOSITORY_ROOT, repositoryFiles } from '../support/repository-files.ts'
import { USER_PASSWORD } from '../support/suite-secrets.ts'
import { tempFolder } from '../support/temp-folder.ts'

const run = promisify(execFile)

interface Packed {
  readonly mode: string
  readonly owner: string
  readonly path: string
}

describe('the Debian packages', () => {
  const parts = new AsyncDisposableStack()
  let folder = ''
  /** Where each package is extracted. */
  const trees = new Map<PackageName, string>()
  const contents = new Map<PackageName, readonly Packed[]>()

  before(async () => {
    folder = parts.use(await tempFolder()).path
    await buildPackages(folder, { isFast: true })
    const extracted = parts.use(await tempFolder()).path
    for (const name of PACKAGE_NAMES) {
      const [archive, tree] = [await archiveOf(name, folder), join(extracted, name)]
      await run('dpkg-deb', ['--extract', archive, tree])
      trees.set(name, tree)
      contents.set(name, await contentOf(archive))
    }
  })
  after(() => parts.disposeAsync())

  const field = async (name: PackageName, key: string): Promise<string> =>
    (await run('dpkg-deb', ['--field', await archiveOf(name, folder), key])).stdout.trim()
  const control = async (name: PackageName, file: string): Promise<string> =>
    (await run('dpkg-deb', ['--info', await archiveOf(name, folder), file])).stdout
  const content = (name: PackageName): readonly Packed[] => contents.get(name) ?? []
  const paths = (name: PackageName): readonly string[] => content(name).map(({ path }) => path)
  const treeOf = (name: PackageName): string => trees.get(name) ?? ''

  test('are the same bytes whatever umask, times and folder their files come from', async () => {
    await using other = await tempFolder()
    const [version, architecture, epochS] = ['1.2.3', 'amd64', 1_700_000_000]
    const archives = []
    for (const [name, mode, seconds] of [
      ['first', 0o077, 1_000],
      ['second', 0o022, 2_000],
    ] as const) {
      const [tree, file] = [join(other.path, name), join(other.path, `${name}.deb`)]
      // In another order each time, which folders keep.
      const files = ['etc/capfleet/a.yaml', 'opt/capfleet/b', 'opt/capfleet/c.ts', 'usr/d']
      for (const path of name === 'first' ? files : files.toReversed()) {
        await mkdir(dirname(join(tree, path)), { recursive: true })
        await chmod(dirname(join(tree, path)), 0o777 & ~mode)
        await writeFile(join(tree, path), path)
        await chmod(join(tree, path), (path.endsWith('b') ? 0o777 : 0o666) & ~mode)
        await utimes(join(tree, path), seconds, seconds)
      }
      await symlink('b', join(tree, 'opt/capfleet/link'))
      buildArchive({ name: 'capfleet-client', version, architecture, epochS, tree, isFast: true }, file)
      archives.push(await readFile(file))
    }
    assert.ok(archives[0]?.equals(archives[1] as Buffer))
  })

  test('come with checksums that sha256sum accepts', async () => {
    const { stdout } = await run('sha256sum', ['--check', 'SHA256SUMS'], { cwd: folder })
    const others = (await readdir(folder)).filter((name) => name !== 'SHA256SUMS').sort()
    assert.equal(stdout, others.map((name) => `${name}: OK\n`).join(''))
    assert.ok(others.some((name) => /^capfleet-npm-\d.*\.tgz$/.test(name)))
  })

  test('share no file, and only the configuration is kept as one', async () => {
    const found = new Map<string, PackageName>()
    for (const name of PACKAGE_NAMES) {
      for (const path of paths(name).filter((one) => !one.endsWith('/'))) {
        assert.equal(found.get(path), undefined, `${path} is in ${name} and ${found.get(path)}`)
        found.set(path, name)
      }
    }
    assert.equal(await control('capfleet-appliance', 'conffiles'), '/etc/capfleet/appliance.yaml\n')
    assert.equal(await control('capfleet-gateway', 'conffiles'), '/etc/capfleet/gateway.yaml\n')
    const configured = [...found.keys()].filter((path) => path.startsWith('/etc/'))
    assert.deepEqual(configured.sort(), ['/etc/capfleet/appliance.yaml', '/etc/capfleet/gateway.yaml'])
  })

  test('belong to root, and nobody else may write to them', async () => {
    for (const name of PACKAGE_NAMES) {
      const wrong = content(name).filter(
        ({ mode, owner }) => owner !== 'root/root' || !/^(l|[d-]rw.r-.r-.)/.test(mode),
      )
      assert.deepEqual(wrong, [], name)
    }
  })

  test('hold the units, users and folders of their own programs', async () => {
    const units = (name: PackageName) =>
      paths(name).flatMap((path) => /\/([\w-]+)\.service$/.exec(path)?.[1] ?? [])
    assert.deepEqual(units('capfleet-appliance'), ['capfleet-appliance', 'capfleet-recorder'])
    assert.deepEqual(units('capfleet-gateway'), ['capfleet-gateway', 'capfleet-worker'])
    for (const [name, users, folders] of [
      ['capfleet-appliance', ['capfleet', 'capfleet-recorder'], ['store']],
      ['capfleet-gateway', ['capfleet-gateway'], ['gateway']],
    ] as const) {
      const read = (kind: string) => readFile(join(treeOf(name), `usr/lib/${kind}.d/${name}.conf`), 'utf8')
      const made = [...(await read('sysusers')).matchAll(/^u (\S+)/gm)].map(([, user]) => user)
      assert.deepEqual(made, users)
      const lines = [...(await read('tmpfiles')).matchAll(/^d (\S+)/gm)].map(([, path]) => path)
      const own = folders.map((path) => `/var/lib/capfleet/${path}`)
      assert.deepEqual(lines, ['/etc/capfleet', '/var/lib/capfleet', ...own])
    }
  })

  test('hold every file that a program loads, and no test, native source, page source or header', async () => {
    const all = new Set(PACKAGE_NAMES.flatMap(paths))
    const loaded = repositoryFiles().filter((path) =>
      /^(appliance|src\/(?!(console|dissector)\/)|native\/[^/]+\.ts$)/.test(path),
    )
    assert.ok(loaded.length > 400)
    assert.deepEqual(
      loaded.filter((path) => !all.has(`/opt/capfleet/${path}`)),
      [],
    )
    const unwanted =
      /\/opt\/capfleet\/(test|\.|helm|src\/console|src\/dissector|dist-dissector)|\.(cc|h|cmake)$|\/node_modules\/(typescript|vite)\//
    assert.deepEqual(
      [...all].filter((path) => unwanted.test(path) && !path.includes('/node_modules/.bin')),
      [],
    )
    for (const path of [
      'dist-console/index.html',
      'dist-docs/index.html',
      'docs/index.md',
      'docs/guides/users.md',
    ])
      assert.ok(all.has(`/opt/capfleet/${path}`), path)
  })

  test('the client has the npm packages of what all share, the gateway those that only it loads', async () => {
    const has = (name: PackageName, module: string) =>
      paths(name).includes(`/opt/capfleet/node_modules/${module}/package.json`)
    for (const module of ['commander', 'koa', 'pino', 'zod']) assert.ok(has('capfleet-client', module))
    for (const module of ['bullmq', '@aws-sdk/client-s3', 'ioredis'])
      assert.ok(has('capfleet-gateway', module), module)
    assert.ok(paths('capfleet-client').includes('/opt/capfleet/node_modules/.bin/node'))
    assert.ok(!paths('capfleet-appliance').some((path) => path.includes('/node_modules/')))
  })

  test('depend on one version of each other, and on the libraries of their engine', async () => {
    const { version } = JSON.parse(await readFile(join(REPOSITORY_ROOT, 'package.json'), 'utf8')) as {
      readonly version: string
    }
    for (const name of PACKAGE_NAMES) {
      assert.equal(await field(name, 'Version'), version)
      const depends = await field(name, 'Depends')
      if (name !== 'capfleet-client') assert.match(depends, new RegExp(`^capfleet-client \\(= ${version}\\)`))
      const { stdout } = await run('find', [
        treeOf(name),
        '-name',
        '*.node',
        '-o',
        '-name',
        'node',
        '-o',
        '-name',
        '*-compile',
      ])
      const binaries = stdout
        .trim()
        .split('\n')
        .filter((path) => path.includes('/native/build/') || path.endsWith('/bin/node'))
      for (const library of new Set(binaries.flatMap(librariesOf)))
        assert.match(depends, new RegExp(`(^| )${library.replaceAll(/[.+]/g, '\\$&')}(,| |$)`), name)
    }
  })

  test('have a bill of materials', { skip: WITHOUT_PYTHON_TOOLS }, async () => {
    for (const name of PACKAGE_NAMES) {
      const text = await readFile(`${await archiveOf(name, folder)}.cdx.json`, 'utf8')
      assert.equal(sbomMistakes(text), '', name)
      const { metadata, components } = JSON.parse(text) as Sbom
      assert.equal(metadata.component.name, name)
      const names = components.map((component) => component.name)
      assert.equal(names.includes('bullmq'), name === 'capfleet-gateway')
      assert.equal(names.includes('native/build/capfleet.node'), name === 'capfleet-appliance')
      assert.equal(names.includes('commander'), name === 'capfleet-client')
      assert.ok(names.includes('libc6'))
    }
  })

  test('come with the client as one executable, which runs without anything of capfleet beside it', async () => {
    await using fleet = await startSmallFleet()
    await using home = await tempFolder()
    const [name = ''] = (await readdir(folder)).filter((one) => one.endsWith('.tar.gz'))
    await run('tar', ['-xzf', join(folder, name)], { cwd: home.path })
    const program = join(home.path, name.replace('.tar.gz', ''), 'capfleet')
    const env = { PATH: '/nonexistent', XDG_CONFIG_HOME: join(home.path, 'config') }
    const client = (...args: string[]) => run(program, args, { cwd: home.path, env })
    const { version } = JSON.parse(await readFile(join(REPOSITORY_ROOT, 'package.json'), 'utf8')) as {
      readonly version: string
    }
    assert.equal((await client('--version')).stdout, `capfleet ${version}\n`)
    await writeFile(join(home.path, 'password'), USER_PASSWORD)
    await client('login', fleet.gateway.url, '--user', 'user', '--password-file', 'password')
    assert.match((await client('devices')).stdout, /^east .*\nwest /m)
    await client('get', 'east-first')
    assert.equal((await readFile(join(home.path, 'east-first.pcap'))).length, 1_944)
    assert.equal((await client('__complete', '--', 'get', 'east-s')).stdout, 'east-second\n')
    const { stdout } = await client('--help')
    const [, list = ''] = /Commands:\n([\s\S]*)/.exec(stdout) ?? []
    const names = [...list.matchAll(/^ {2}(\w+)/gm)]
      .map(([, one = '']) => one)
      .filter((one) => one !== 'help')
    assert.deepEqual(names, Object.keys(CLIENT_COMMANDS))
    for (const one of names) await client(one, '--help')
    await assert.rejects(client('gateway'), /error: unknown command 'gateway'/)
  })

  test('the executable names what is in it', { skip: WITHOUT_PYTHON_TOOLS }, async () => {
    const [name = ''] = (await readdir(folder)).filter((one) => one.endsWith('.tar.gz'))
    const text = await readFile(join(folder, `${name}.cdx.json`), 'utf8')
    assert.equal(sbomMistakes(text), '')
    const named = (JSON.parse(text) as Sbom).components.map((component) => component.name)
    for (const one of ['commander', 'yaml', 'zod', `node-linux-${process.arch}`])
      assert.ok(named.includes(one), named.join())
    const { stdout } = await run('tar', ['-tzf', join(folder, name)])
    for (const one of named) assert.match(stdout, new RegExp(`/licenses/${one}/LICEN[CS]E`), one)
  })

  test('are not made for another machine than the one that the engine was built for', async () => {
    const other = process.arch === 'x64' ? 'arm64' : 'amd64'
    await using out = await tempFolder()
    const args = ['--arch', other, '--native', 'native/build', '--out', out.path]
    await assert.rejects(
      run(process.execPath, [join(REPOSITORY_ROOT, '.ci/package.mjs'), ...args], { cwd: REPOSITORY_ROOT }),
      new RegExp(`capfleet\\.node was not built for ${other}`),
    )
  })

  test('have scripts that sh can parse', async () => {
    const scripts = (await readdir(join(REPOSITORY_ROOT, 'config/debian'))).filter(
      (name) => !name.endsWith('.control'),
    )
    assert.ok(scripts.length > 5)
    for (const script of scripts) await run('sh', ['-n', join(REPOSITORY_ROOT, 'config/debian', script)])
  })
})

async function contentOf(archive: string): Promise<readonly Packed[]> {
  const { stdout } = await run('dpkg-deb', ['--contents', archive], { maxBuffer: 64 << 20 })
  const lines = stdout.matchAll(/^(\S+) (\S+) +\d+ \S+ \S+ \.(\/.*?)(?: -> .*)?$/gm)
  return [...lines].map(([, mode = '', owner = '', path = '']) => ({ mode, owner, path }))
}

/** Debian packages with the libraries that a binary names itself. */
function librariesOf(binary: string): readonly string[] {
  const dynamic = execFileSync('objdump', ['-p', binary], { encoding: 'utf8' })
  return [...dynamic.matchAll(/NEEDED +(\S+)/g)].map(([, name = '']) => LIBRARIES[name] ?? name)
}

const HYPERSCAN = process.arch === 'x64' ? 'libhyperscan5' : 'libvectorscan5'
/** An unknown library is not found in Depends by its own name, and fails the test. */
const LIBRARIES: Readonly<Record<string, string>> = {
  ...{ 'libc.so.6': 'libc6', 'libm.so.6': 'libc6', 'libdl.so.2': 'libc6', 'libpthread.so.0': 'libc6' },
  ...{ 'ld-linux-x86-64.so.2': 'libc6', 'ld-linux-aarch64.so.1': 'libc6' },
  ...{ 'libgcc_s.so.1': 'libgcc-s1', 'libstdc++.so.6': 'libstdc++6' },
  ...{ 'libhs.so.5': HYPERSCAN, 'libhs_runtime.so.5': HYPERSCAN },
  ...{ 'libisal.so.2': 'libisal2', 'libdeflate.so.0': 'libdeflate0', 'libpcap.so.0.8': 'libpcap0.8' },
  ...{ 'libxxhash.so.0': 'libxxhash0', 'libzstd.so.1': 'libzstd1', 'libbz2.so.1.0': 'libbz2-1.0' },
  ...{ 'liblz4.so.1': 'liblz4-1', 'liblzma.so.5': 'liblzma5' },
}
