// Makes a release from the present commit: checks that everything names its version, runs all tests, builds what is
// delivered, twice, and tags the commit. RELEASING.md says what to do before and after.
//   npm run release -- --dry-run              only the checks of the versions, and what would be run
//   npm run release -- --steps packages,chart only these steps, without a tag
//   npm run release
import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { writeChecksums } from './package/checksums.mjs'
import { fail, output, ROOT, run, say } from './setup/console.mjs'

const OUT = join(ROOT, 'dist-packages')
const { version, bugs } = JSON.parse(read('package.json'))
const tag = `v${version}`

/** In their order. A step that fails ends the release. */
const STEPS = {
  tests: () => command('npm', 'test'),
  night: () => command('npm', 'run', 'test:night'),
  packages: () => command('npm', 'run', 'package'),
  twice: comparePackages,
  chart: () => {
    command(join(ROOT, '.tools', 'helm'), 'package', 'helm', '--destination', OUT)
    writeChecksums(OUT)
  },
  // With a person's changes in between it would be the tag of something else.
  tag: () => {
    refuseUnless(mistakes())
    command('git', 'tag', '--annotate', tag, '--message', `capfleet ${version}\n\n${section(version).text}`)
  },
}

function read(path) {
  return readFileSync(join(ROOT, path), 'utf8')
}

function command(program, ...args) {
  if (!run(program, args)) fail(`${[program, ...args].join(' ')} failed; its message is above`)
}

/** The text of CHANGELOG.md below "## [NAME]", and what follows the name in that line. */
function section(name) {
  const start = `## [${name}]`
  const found =
    read('CHANGELOG.md')
      .split(/^(?=## )/m)
      .find((one) => one.startsWith(start)) ?? ''
  const [head, ...lines] = found.slice(start.length).split('\n')
  return { rest: head.trim(), text: lines.join('\n').trim() }
}

/** What speaks against a release of this commit: one sentence each. */
function mistakes() {
  const { rest, text } = section(version)
  const named = {
    'package-lock.json': JSON.parse(read('package-lock.json')).packages[''].version,
    'helm/Chart.yaml (version)': /^version: (.*)$/m.exec(read('helm/Chart.yaml'))?.[1],
    'helm/Chart.yaml (appVersion)': /^appVersion: (.*)$/m.exec(read('helm/Chart.yaml'))?.[1],
    'config/Dockerfile (VERSION)': /^ARG VERSION=(.*)$/m.exec(read('config/Dockerfile'))?.[1],
  }
  return [
    ...Object.entries(named)
      .filter(([, one]) => one !== version)
      .map(([where, one]) => `${where} has the version ${one}, and package.json ${version}.`),
    (text === '' || !/^- \d{4}-\d\d-\d\d$/.test(rest)) &&
      `CHANGELOG.md has no section "## [${version}] - YYYY-MM-DD" with text.`,
    section('Unreleased').text !== '' &&
      `CHANGELOG.md has changes under "[Unreleased]", which belong to ${version}.`,
    !/^[^\s@]+@[^\s@]+$/.test(bugs?.email ?? '') &&
      'package.json has no "bugs": { "email": "...", "url": "..." }; fill in the address to which vulnerabilities are reported in ' +
        'private, and that for other bugs if you have one, and run npm run reference, which writes it into SECURITY.md and docs.',
    output('git', ['status', '--porcelain']) !== '' && 'There are changes that are not committed.',
    output('git', ['branch', '--show-current']).trim() !== 'main' && 'The branch is not main.',
    output('git', ['tag', '--list', tag]) !== '' && `The tag ${tag} exists.`,
    process.getuid() !== 0 && 'Only root can test the images and the Debian packages.',
  ].filter((sentence) => sentence !== false)
}

function refuseUnless(found) {
  for (const sentence of found) say(sentence)
  if (found.length > 0) fail(`no release of ${version}: see above`)
}

/** Builds all packages again, from a clone in another folder with a build of its own, and compares the bytes. */
function comparePackages() {
  if (!existsSync(OUT)) fail('there are no packages to compare with: the step "packages" makes them')
  const clone = mkdtempSync(join(tmpdir(), 'capfleet-second-build-'))
  process.once('exit', () => rmSync(clone, { recursive: true, force: true }))
  command('git', 'clone', '--quiet', ROOT, clone)
  if (!run('npm', ['run', 'package'], { cwd: clone })) fail('the second build failed; its message is above')
  // The first folder may have the chart too.
  const { status, stdout } = spawnSync('sha256sum', ['--check', '--quiet', '-'], {
    cwd: OUT,
    input: readFileSync(join(clone, 'dist-packages', 'SHA256SUMS'), 'utf8'),
    encoding: 'utf8',
  })
  if (status !== 0) fail(`two builds of the same commit differ:\n${stdout}`)
  say('a second build in another folder gave the same bytes')
}

const { values } = parseArgs({ options: { 'dry-run': { type: 'boolean' }, steps: { type: 'string' } } })
const wanted = values.steps?.split(',') ?? Object.keys(STEPS)
const unknown = wanted.filter((name) => !Object.hasOwn(STEPS, name))
if (unknown.length > 0)
  fail(`--steps is a list of ${Object.keys(STEPS).join(', ')}; not ${unknown.join(', ')}`)

if (values['dry-run']) {
  say(`would run for ${tag}: ${wanted.join(', ')}`)
  refuseUnless(mistakes())
  say(`nothing speaks against ${tag}`)
  process.exit(0)
}
if (wanted.includes('tag')) refuseUnless(mistakes())
for (const name of wanted) {
  say(`step ${name}`)
  STEPS[name]()
}
if (wanted.includes('tag')) say(`tagged ${tag}; RELEASING.md, "After the tag", has what remains`)
