// Sets up what is missing, and says what it installs: Debian packages, npm packages (among them
// the Node.js that runs capfleet), the native build; for tests a folder of Python tools too. Quick when nothing is missing.
//   node .ci/setup.mjs [--test|--engine-tests|--fuzz]
// --test adds what `npm test` and `npm run bench` need, --engine-tests the engine's own tests alone,
// --fuzz only brings what `npm run fuzz` needs.
// Plain JavaScript for any Node.js from 20 on: it runs before the pinned one is there.
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = dirname(dirname(fileURLToPath(import.meta.url)))
const forTests = process.argv.includes('--test')
const forEngineTests = process.argv.includes('--engine-tests')
const forFuzzing = process.argv.includes('--fuzz')

const RUN_PACKAGES = [
  'cmake',
  'g++',
  'make',
  'libpcap-dev',
  'libzstd-dev',
  'libisal-dev',
  'libdeflate-dev',
  'zlib1g-dev',
  'libxxhash-dev',
  // Vectorscan is Hyperscan for processors other than Intel's, with the same names.
  process.arch === 'x64' ? 'libhyperscan-dev' : 'libvectorscan-dev',
  'redis-server',
  'netbase',
  // The lines that the demo prints use both.
  'curl',
  'tcpdump',
  'zstd',
]
const TEST_PACKAGES = [
  'libgtest-dev',
  'clang-format',
  'tshark',
  'wireshark-common',
  'gzip',
  'pigz',
  'nginx-light',
  'haproxy',
  'wrk',
  'ethtool',
  'iproute2',
  'e2fsprogs',
  'xfsprogs',
  'netsniff-ng',
  'python3-venv',
  'zsh',
  'fish',
]

const FUZZ_PACKAGES = ['clang-14', 'libclang-rt-14-dev']

function say(text) {
  process.stderr.write(`setup: ${text}\n`)
}

function fail(text) {
  say(text)
  process.exit(1)
}

/** Runs a command with its output on stderr: stdout belongs to the program that follows. */
function run(command, args, options = {}) {
  const result = spawnSync(command, args, { cwd: ROOT, stdio: ['ignore', 2, 2], ...options })
  if (result.error) fail(`cannot run ${command}: ${result.error.message}`)
  return result.status === 0
}

function output(command, args) {
  const result = spawnSync(command, args, { cwd: ROOT, encoding: 'utf8' })
  return result.status === 0 ? result.stdout : ''
}

function missingPackages(names) {
  // biome-ignore lint/suspicious/noTemplateCurlyInString: dpkg-query's own placeholders
  const format = '${Package} ${db:Status-Status}\n'
  const installed = spawnSync('dpkg-query', ['-W', '-f', format, ...names], {
    encoding: 'utf8',
  })
  if (installed.error)
    fail(`this set-up knows Debian 12 only (no dpkg-query); install by hand: ${names.join(' ')}`)
  const present = new Set(
    installed.stdout
      .split('\n')
      .filter((line) => line.endsWith(' installed'))
      .map((line) => line.split(' ')[0]),
  )
  return names.filter((name) => !present.has(name))
}

function installPackages(names) {
  const missing = missingPackages(names)
  if (missing.length === 0) return
  const root = process.getuid() === 0
  if (!root && spawnSync('sudo', ['-n', 'true']).status !== 0) {
    fail(
      `Debian packages are missing; run this, then try again:\n  sudo apt-get install -y --no-install-recommends ${missing.join(' ')}`,
    )
  }
  say(`installing Debian packages: ${missing.join(' ')}`)
  const apt = (args) => {
    const command = [
      'env',
      'DEBIAN_FRONTEND=noninteractive',
      'apt-get',
      '-qq',
      '-o',
      'Dpkg::Use-Pty=0',
      ...args,
    ]
    return root ? run(command[0], command.slice(1)) : run('sudo', ['-n', ...command])
  }
  const install = () => apt(['install', '-y', '--no-install-recommends', ...missing])
  apt(['update'])
  if (!install()) fail('apt-get failed; its message is above')
}

/** node_modules follows the lock file: a stamp inside it remembers which one it was made from. */
function installModules() {
  const stamp = join(ROOT, 'node_modules', '.capfleet-lock')
  const wanted = createHash('sha256')
    .update(readFileSync(join(ROOT, 'package-lock.json')))
    .digest('hex')
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === wanted) return
  say('installing npm packages (npm ci)')
  const npm = process.env.npm_execpath
  const args = ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error']
  const done = npm ? run(process.execPath, [npm, ...args]) : run('npm', args)
  if (!done) fail('npm ci failed; its message is above')
  writeFileSync(stamp, wanted)
}

/** Tools of the tests in Python: a folder of their own, which follows its lock file as node_modules does. */
function installPythonTools() {
  const lock = join(ROOT, '.ci', 'python-lock.txt')
  const folder = join(ROOT, '.venv')
  const stamp = join(folder, '.capfleet-lock')
  const wanted = createHash('sha256').update(readFileSync(lock)).digest('hex')
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === wanted) return
  say('installing schemathesis (pip)')
  const made = run('/usr/bin/python3', ['-m', 'venv', '--clear', folder])
  const args = [
    'install',
    '--quiet',
    '--disable-pip-version-check',
    '--require-hashes',
    '--only-binary=:all:',
  ]
  if (!made || !run(join(folder, 'bin', 'pip'), [...args, '-r', lock]))
    fail('pip failed; its message is above')
  writeFileSync(stamp, wanted)
}

/** The S3 server of the tests, which is made of a Go module. Where it cannot be made, the tests that need it say so. */
function buildS3Server() {
  const source = join(ROOT, 'test', 'tools', 's3')
  const binary = join(ROOT, '.tools', 's3')
  const stamp = join(ROOT, '.tools', 's3.sources')
  const hash = createHash('sha256')
  for (const name of ['go.mod', 'go.sum', 'main.go']) hash.update(readFileSync(join(source, name)))
  const wanted = hash.digest('hex')
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === wanted) return
  if (spawnSync('go', ['version']).status !== 0)
    return say('Go is not installed: tests that need an S3 server are skipped')
  say('building the S3 server of the tests with Go (a minute)')
  // The sums in the repository hold, whatever the environment says about modules.
  const args = ['build', '-mod=readonly', '-trimpath', '-ldflags=-s -w', '-o', binary, '.']
  if (!run('go', args, { cwd: source }))
    return say('go failed, its message is above: tests that need an S3 server are skipped')
  writeFileSync(stamp, wanted)
}

function nodePackage() {
  const name = `node-linux-${process.arch}`
  const folder = join(ROOT, 'node_modules', name)
  if (!existsSync(join(folder, 'include')))
    fail(`no Node.js package for this machine (${name}); capfleet runs on Linux x64 and arm64`)
  return folder
}

/**
 * Configures once; builds what has changed. The first build shows its progress, a later one only its failure.
 * Who changes branches often installs ccache and sets CMAKE_CXX_COMPILER_LAUNCHER=ccache before the first build.
 */
function buildNative(folder, options) {
  const build = join(ROOT, 'native', folder)
  const built = join(build, '.built')
  const jobs = String(Math.max(2, Number(output('nproc', [])) || 2))
  if (!existsSync(join(build, 'Makefile'))) {
    say(`configuring native/${folder}`)
    const definitions = Object.entries(options).map(([name, value]) => `-D${name}=${value}`)
    const args = ['-S', 'native', '-B', build, '-G', 'Unix Makefiles', ...definitions]
    if (!run('cmake', args)) fail('cmake failed; its message is above')
  }
  const quiet = existsSync(built)
  if (!quiet) say(`building native/${folder} (a minute or two)`)
  const result = spawnSync('cmake', ['--build', build, '--parallel', jobs], {
    cwd: ROOT,
    stdio: quiet ? 'pipe' : ['ignore', 2, 2],
    encoding: 'utf8',
  })
  if (result.status !== 0) {
    if (quiet) process.stderr.write(`${result.stdout}${result.stderr}`)
    fail('the native build failed; its message is above')
  }
  writeFileSync(built, '')
}

if (forFuzzing) {
  installPackages([...RUN_PACKAGES, ...FUZZ_PACKAGES])
  process.exit(0)
}
if (forEngineTests) {
  installPackages([...RUN_PACKAGES, 'libgtest-dev'])
  buildNative('build-test', { CAPFLEET_TESTS: 'ON' })
  process.exit(0)
}
installPackages(forTests ? [...RUN_PACKAGES, ...TEST_PACKAGES] : RUN_PACKAGES)
installModules()
buildNative('build', {
  CMAKE_BUILD_TYPE: 'Release',
  NODE_INCLUDE_DIR: join(nodePackage(), 'include', 'node'),
  NODE_ADDON_API_DIR: join(ROOT, 'node_modules', 'node-addon-api'),
})
if (forTests) {
  installPythonTools()
  buildS3Server()
  buildNative('build-test', { CAPFLEET_TESTS: 'ON' })
  buildNative('build-tsan', { CAPFLEET_TESTS: 'ON', CAPFLEET_SANITIZER: 'thread' })
}
