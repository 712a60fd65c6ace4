// Installs what is missing, in numbered steps, and prints what it installs: Debian packages, npm packages (including the
// Node.js that runs capfleet), the native build; for tests also more tools. Fast if nothing is missing.
//   node .ci/setup.mjs [--test|--bench|--engine-tests|--fuzz|--kubernetes|--clients|--test-files [FILE...]]
// --test adds what `npm test` needs, --bench also what `npm run bench` needs, --engine-tests only the engine's own
// tests, --fuzz only what `npm run fuzz` needs, --kubernetes adds what `npm run test:kubernetes` needs, --clients what
// `npm run clients` needs, --test-files what all test files need, and these.
// Plain JavaScript for Node.js 20 or later, because it runs before the pinned one is installed.
import { spawnSync } from 'node:child_process'
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { buildConsole } from './setup/build-console.mjs'
import { buildDissector } from './setup/build-dissector.mjs'
import { buildDocs } from './setup/build-docs.mjs'
import { fail, inSteps, output, ROOT, run, say } from './setup/console.mjs'
import {
  CLIENT_PACKAGES,
  ENGINE_TEST_PACKAGES,
  FUZZ_PACKAGES,
  installPackages,
  installWhereAllowed,
  KUBERNETES_PACKAGES,
  PROFILE_PACKAGES,
  RUN_PACKAGES,
  TEST_PACKAGES,
  unpackPromtool,
} from './setup/debian-packages.mjs'
import { buildChartTools, buildClientGenerator, buildKubernetes, buildS3Server } from './setup/go-tools.mjs'
import { makeKubernetesSchemas } from './setup/kubernetes-schemas.mjs'
import { ALL_NEEDS, needsOf } from './setup/test-needs.mjs'
import { whenChanged } from './setup/when-changed.mjs'

const forBench = process.argv.includes('--bench')
const forTests = forBench || process.argv.includes('--test')
const forEngineTests = process.argv.includes('--engine-tests')
const forFuzzing = process.argv.includes('--fuzz')
const forKubernetes = process.argv.includes('--kubernetes')
const filesAt = process.argv.indexOf('--test-files')
const testFiles = filesAt === -1 ? [] : process.argv.slice(filesAt + 1)
const needs = forTests ? ALL_NEEDS : needsOf(testFiles)
const forClients = process.argv.includes('--clients')

/** node_modules follows the lock file: a stamp in it records which one it was created from. */
function installModules() {
  const stamp = join(ROOT, 'node_modules', '.capfleet-lock')
  whenChanged(stamp, [join(ROOT, 'package-lock.json')], () => {
    say('installing npm packages (npm ci)')
    const npm = process.env.npm_execpath
    const args = ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error']
    const done = npm ? run(process.execPath, [npm, ...args]) : run('npm', args)
    return done || fail('npm ci failed; its message is above')
  })
}

/** Tools that are Python packages: a folder of their own, which follows its lock file like node_modules. */
function installPythonTools(lock, folder, what) {
  whenChanged(join(folder, '.capfleet-lock'), [lock], () => {
    say(`installing Python packages of ${what} (pip)`)
    const made = run('/usr/bin/python3', ['-m', 'venv', '--clear', folder])
    const args = [
      'install',
      '--quiet',
      '--disable-pip-version-check',
      '--require-hashes',
      '--only-binary=:all:',
    ]
    const done = made && run(join(folder, 'bin', 'pip'), [...args, '-r', lock])
    return done || fail('pip failed; its message is above')
  })
}

function nodePackage() {
  const name = `node-linux-${process.arch}`
  const folder = join(ROOT, 'node_modules', name)
  if (!existsSync(join(folder, 'include')))
    fail(`no Node.js package for this machine (${name}); capfleet runs on Linux x64 and arm64`)
  return folder
}

/**
 * Configures once; builds what has changed. The first build shows its progress, a later one only its failure. If you
 * switch branches often, install ccache and set CMAKE_CXX_COMPILER_LAUNCHER=ccache before the first build.
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
  if (!quiet) say(`building native/${folder}: one to ten minutes, the percentages show how far it is`)
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

const basics = () =>
  installPackages([
    ...RUN_PACKAGES,
    ...(forTests ? TEST_PACKAGES : []),
    ...(forKubernetes ? KUBERNETES_PACKAGES : []),
  ])
const engineTests = () => buildNative('build-test', { CAPFLEET_TESTS: 'ON' })

function allSteps() {
  if (forFuzzing) return [() => installPackages([...RUN_PACKAGES, ...FUZZ_PACKAGES])]
  if (forEngineTests) return [() => installPackages([...RUN_PACKAGES, ...ENGINE_TEST_PACKAGES]), engineTests]
  const wanted = [
    [true, basics],
    [filesAt !== -1, () => installWhereAllowed(TEST_PACKAGES, 'tests that use them')],
    [forBench, () => installWhereAllowed(PROFILE_PACKAGES, '`npm run bench -- profile`')],
    [true, installModules],
    [true, buildConsole],
    [true, buildDissector],
    [true, buildDocs],
    [true, buildEngine],
    [forBench, buildBenchmark],
    [needs.has('python') || forKubernetes, installTestTools],
    [needs.has('chart') || forKubernetes, buildChartTools],
    [needs.has('chart'), makeKubernetesSchemas],
    [needs.has('promtool'), unpackPromtool],
    [needs.has('s3'), buildS3Server],
    [needs.has('engine'), engineTests],
    [needs.has('threads'), buildForThreads],
    [forKubernetes, buildKubernetes],
    [forClients, buildClientTools],
  ]
  return wanted.filter(([isWanted]) => isWanted).map(([, step]) => step)
}

function buildEngine() {
  buildNative('build', {
    CMAKE_BUILD_TYPE: 'Release',
    NODE_INCLUDE_DIR: join(nodePackage(), 'include', 'node'),
    NODE_ADDON_API_DIR: join(ROOT, 'node_modules', 'node-addon-api'),
  })
}

function buildBenchmark() {
  if (!run('cmake', ['--build', 'native/build', '--target', 'capfleet-engine-run']))
    fail('the benchmark program was not built; the message is above')
}

function installTestTools() {
  installPythonTools(join(ROOT, '.ci', 'python-lock.txt'), join(ROOT, '.venv'), 'the tests')
}

function buildForThreads() {
  buildNative('build-tsan', { CAPFLEET_TESTS: 'ON', CAPFLEET_SANITIZER: 'thread' })
}

function buildClientTools() {
  installWhereAllowed(CLIENT_PACKAGES, '`npm run clients`')
  const lock = join(ROOT, '.ci', 'clients-lock.txt')
  installPythonTools(lock, join(ROOT, '.tools', 'clients'), 'generators of clients')
  buildClientGenerator()
}

inSteps(allSteps())
