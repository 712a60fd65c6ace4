// What each Debian package contains: a folder for each, as it lies on the disk after the installation.
//   capfleet-client     the command line, its Node.js, and what the other two share
//   capfleet-appliance  appliance and recorder
//   capfleet-gateway    gateway and worker, and the npm packages that only they load
// All of it is in /opt/capfleet, where the units of config/systemd and the images have it too.
import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { fail, output, ROOT, run } from '../setup/console.mjs'
import { ARCHITECTURES, PACKAGES } from './debian-facts.mjs'
import { runModules, sharedModules } from './npm-modules.mjs'

const HOME = 'opt/capfleet'
const UNITS = {
  'capfleet-appliance': ['capfleet-appliance.service', 'capfleet-recorder.service'],
  'capfleet-gateway': ['capfleet-gateway.service', 'capfleet-worker.service'],
}
const ENGINE = {
  'capfleet-appliance': ['capfleet.node', 'capfleet-bpf-compile', 'capfleet-regex-compile'],
  'capfleet-gateway': ['capfleet-gateway.node'],
}
/** Where an ELF file has the number of its machine. */
const ELF_MACHINE = 18
/** Shells that find a script of this name in this folder. */
const COMPLETIONS = {
  bash: 'usr/share/bash-completion/completions/capfleet',
  zsh: 'usr/share/zsh/vendor-completions/_capfleet',
  fish: 'usr/share/fish/vendor_completions.d/capfleet.fish',
}

/** Whether a package has parts of the engine in it. */
export function needsEngine(name) {
  return ENGINE[name] !== undefined
}

/** Makes work/NAME for each package; `native` is the folder with the engine, or undefined to leave the engine out. */
export function layTrees({ work, architecture, native }) {
  // First, because it may be of another machine.
  if (native !== undefined) layEngine(work, native, architecture)
  const known = output('git', ['ls-files', '--cached']).trim().split('\n')
  for (const path of known.filter((name) => existsSync(join(ROOT, name)))) {
    const owner = ownerOf(path)
    if (owner !== undefined) copy(join(ROOT, path), join(work, owner, HOME, path))
  }
  layModules(work, architecture)
  for (const site of ['dist-console', 'dist-docs']) {
    cpSync(join(ROOT, site), join(work, 'capfleet-gateway', HOME, site), {
      recursive: true,
      dereference: true,
      filter: (path) => basename(path) !== '.built',
    })
  }
  for (const name of ['appliance', 'gateway']) layProgram(work, name)
  layCommand(work)
  for (const name of PACKAGES)
    copy(join(ROOT, 'LICENSE'), join(work, name, 'usr/share/doc', name, 'copyright'))
}

/** The package of a file of the repository, or nothing. */
function ownerOf(path) {
  if (/^appliance\//.test(path)) return 'capfleet-appliance'
  if (/^src\/gateway\/audit\//.test(path)) return 'capfleet-client'
  if (/^src\/(gateway|worker)\//.test(path)) return 'capfleet-gateway'
  if (/^(src\/(console|dissector)|docs\/\.vitepress)\//.test(path)) return undefined
  if (/^(src\/|native\/[^/]+\.ts$)/.test(path)) return 'capfleet-client'
  const isForAll = ['package.json', 'LICENSE', 'CHANGELOG.md', 'config/compile-ahead.sh'].includes(path)
  return isForAll || isNamedByUnits(path) ? 'capfleet-client' : undefined
}

/** Whether a unit names the file, or a folder with it, as its documentation. */
function isNamedByUnits(path) {
  return Object.values(UNITS)
    .flat()
    .some((unit) => {
      const text = readFileSync(join(ROOT, 'config/systemd', unit), 'utf8')
      const named = /^Documentation=file:\/opt\/capfleet\/(\S+)$/m.exec(text)?.[1]
      return named !== undefined && (path === named || path.startsWith(`${named.replace(/\/$/, '')}/`))
    })
}

function layModules(work, architecture) {
  const { node } = ARCHITECTURES[architecture]
  const shared = sharedModules()
  for (const [path, source] of runModules(node, join(work, 'fetched'))) {
    const name = shared.has(path) ? 'capfleet-client' : 'capfleet-gateway'
    cpSync(source, join(work, name, HOME, path), {
      recursive: true,
      // What is in it is a module of its own; the headers are for building the engine.
      filter: (file) => ![join(source, 'node_modules'), join(source, 'include')].includes(file),
    })
  }
  const bin = join(work, 'capfleet-client', HOME, 'node_modules/.bin')
  mkdirSync(bin)
  symlinkSync(`../node-linux-${node}/bin/node`, join(bin, 'node'))
}

/** Without debug information, and without the number that is made from it and so from the folder of the build. */
function layEngine(work, native, architecture) {
  const { libraries, machine } = ARCHITECTURES[architecture]
  for (const [name, files] of Object.entries(ENGINE)) {
    for (const file of files) {
      const target = join(work, name, HOME, 'native/build', file)
      if (!existsSync(join(native, file))) fail(`no ${file} in ${native}; node .ci/setup.mjs builds it`)
      if (readFileSync(join(native, file)).readUInt16LE(ELF_MACHINE) !== machine)
        fail(`${join(native, file)} was not built for ${architecture}`)
      copy(join(native, file), target)
      const own = spawnSync(`${libraries}-strip`, ['--version']).error === undefined
      const strip = own ? `${libraries}-strip` : 'strip'
      if (!run(strip, ['--strip-debug', '--remove-section=.note.gnu.build-id', target]))
        fail(`strip failed for ${file}; its message is above`)
    }
  }
}

/** Units, users, folders and the configuration of a program with a package of its own. */
function layProgram(work, name) {
  const tree = join(work, `capfleet-${name}`)
  const source = (file) => join(ROOT, 'config/systemd', file)
  for (const unit of UNITS[`capfleet-${name}`]) copy(source(unit), join(tree, 'usr/lib/systemd/system', unit))
  for (const kind of ['sysusers', 'tmpfiles']) {
    const target = join(tree, `usr/lib/${kind}.d/capfleet-${name}.conf`)
    mkdirSync(dirname(target), { recursive: true })
    writeFileSync(target, linesFor(name, readFileSync(source(`capfleet-${kind}.conf`), 'utf8')))
  }
  copy(source(`${name}.yaml`), join(tree, 'etc/capfleet', `${name}.yaml`))
  const example = `${name}.example.yaml`
  copy(join(ROOT, 'config', example), join(tree, 'usr/share/doc', `capfleet-${name}`, example))
}

/** The users and folders of one program; the folders of both are in each. */
function linesFor(name, text) {
  const isShared = (line) => /^d \/(etc|var\/lib)\/capfleet\s/.test(line)
  const isOfGateway = (line) => line.includes('gateway')
  const lines = text.split('\n').filter((line) => /^[a-z] /.test(line))
  const wanted = lines.filter((line) => isShared(line) || isOfGateway(line) === (name === 'gateway'))
  return `${wanted.join('\n')}\n`
}

function layCommand(work) {
  const tree = join(work, 'capfleet-client')
  mkdirSync(join(tree, 'usr/bin'), { recursive: true })
  symlinkSync('../../opt/capfleet/src/capfleet', join(tree, 'usr/bin/capfleet'))
  for (const [shell, path] of Object.entries(COMPLETIONS)) {
    const script = output(join(ROOT, 'src/capfleet'), ['completion', shell])
    if (script === '') fail(`capfleet completion ${shell} failed`)
    mkdirSync(dirname(join(tree, path)), { recursive: true })
    writeFileSync(join(tree, path), script)
  }
}

function copy(from, to) {
  mkdirSync(dirname(to), { recursive: true })
  cpSync(from, to, { dereference: true })
}
