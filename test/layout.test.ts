// The folder tree is the architecture: who may import whom, where files may lie, what they are called.
import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { basename, dirname, join, normalize } from 'node:path'
import { describe, test } from 'node:test'
import { NODE_OPTIONS } from '../src/demo/child-program.ts'
import { REPOSITORY_ROOT, repositoryFiles } from './support/repository-files.ts'

const TOP_LEVEL = new Set([
  'package.json',
  'package-lock.json',
  'tsconfig.json',
  'README.md',
  'REFERENCE.md',
  'ARCHITECTURE.md',
  'CONTRIBUTING.md',
  'LICENSE',
  'CHANGELOG.md',
  'src',
  'appliance',
  'native',
  'config',
  'test',
  'helm',
])

/** Folder (or file) -> what it may import besides itself and packages; the longest name that fits counts. */
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  'src/base': [],
  'src/http': ['src/base'],
  'src/redis': ['src/base'],
  'src/auth': ['src/base', 'src/http', 'src/redis', 'src/query'],
  'src/query': ['src/base/error.ts'],
  'src/audit': ['src/base'],
  'src/contract': ['src/base', 'src/http', 'src/query'],
  'src/pcap': ['src/base/error.ts', 'native/record-merge.ts'],
  'src/device': ['src/base', 'src/http', 'src/query'],
  'src/fleet': ['src/base', 'src/redis', 'src/query', 'src/device'],
  'src/lease': ['src/base', 'src/redis'],
  'src/fetch': [
    'src/base',
    'src/query',
    'src/device',
    'src/fleet',
    'src/lease',
    'src/pcap',
    'native/compressor.ts',
  ],
  'src/serve': [
    'src/base',
    'src/audit',
    'src/http',
    'src/redis',
    'src/query',
    'src/device',
    'src/fleet',
    'src/lease',
    'src/pcap',
    'src/fetch',
  ],
  'src/export/target': ['src/base'],
  'src/export/files': [
    'src/base',
    'src/query',
    'src/pcap',
    'src/fetch',
    'src/export/export-order.ts',
    'src/export/export-record.ts',
    'src/export/target/finished-file.ts',
  ],
  'src/export': [
    'src/export/target',
    'src/export/files',
    'src/base',
    'src/audit',
    'src/http',
    'src/redis',
    'src/auth',
    'src/query',
    'src/device',
    'src/fleet',
    'src/lease',
    'src/pcap',
    'src/fetch',
    'native/compressor.ts',
  ],
  ...routeRules(),
  // Shared with a page: nothing of Node.js. Of the contract it takes types.
  'src/client': ['src/base/error.ts', 'src/query', 'src/contract/export-answers.ts'],
  // It runs in browsers: of the gateway it shares what a parameter is, and nothing of Node.js.
  'src/console': ['src/query', 'src/contract/token-parameters.ts'],
  ...clientRules(),
  'src/demo-traffic': [],
  'src/command': [
    'src/base',
    'src/auth',
    'src/audit',
    'src/demo-traffic',
    'src/command/client/list-output.ts',
    'appliance',
  ],
  src: ['src', 'appliance'],
  ...applianceRules(),
  native: ['src/base/error.ts'],
}

/** The gateway's table, and a room for each kind of what it answers: they share what they take from a request, and little else. */
function routeRules(): Readonly<Record<string, readonly string[]>> {
  const request = [
    'src/base',
    'src/audit',
    'src/http',
    'src/query',
    'src/contract',
    'src/device',
    'src/fleet',
  ]
  const row = ['src/routes/route.ts', 'src/routes/gateway-parts.ts']
  const shared = [...request, ...row, 'src/routes/request']
  return {
    'src/routes/request': [...request, ...row],
    'src/routes/access': [...shared, 'src/auth'],
    'src/routes/fleet': [...shared, 'src/lease'],
    'src/routes/exports': [...shared, 'src/auth', 'src/serve', 'src/export'],
    'src/routes/downloads': [...shared, 'src/lease', 'src/fetch', 'src/serve', 'src/routes/exports'],
    'src/routes': [
      ...shared,
      'src/auth',
      'src/serve',
      'src/export',
      'src/routes/access',
      'src/routes/fleet',
      'src/routes/exports',
      'src/routes/downloads',
    ],
  }
}

/** The commands that ask a gateway: the way to it, where bytes go, and what brings them. */
function clientRules(): Readonly<Record<string, readonly string[]>> {
  const shared = ['src/base', 'src/query', 'src/contract', 'src/client']
  // What all commands have in common, beside the rooms.
  const common = ['list-output', 'query-flags', 'download-flags', 'retries', 'run-client'].map(
    (name) => `src/command/client/${name}.ts`,
  )
  const access = 'src/command/client/access'
  const output = 'src/command/client/output'
  const bringing = [...shared, ...common, access, output, 'src/command/progress-bar.ts']
  return {
    [access]: [...shared, ...common, 'src/command/password-prompt.ts'],
    [output]: ['src/client', 'src/pcap/pcap-header.ts'],
    'src/command/client/downloads': [...bringing, 'src/pcap/pcap-header.ts', 'src/pcap/record-boundary.ts'],
    'src/command/client/exports': bringing,
    'src/command/client': [...bringing, 'src/command/client/downloads', 'src/command/client/exports'],
  }
}

/** Programs on the appliance; only recorder.ts may reach the store's writer. */
function applianceRules(): Readonly<Record<string, readonly string[]>> {
  const shared = [
    'src/base',
    'src/http',
    'src/auth',
    'src/query',
    'src/contract',
    'native/addon.ts',
    'native/download-options.ts',
    'native/import-capture-files.ts',
    'native/live-capture.ts',
    'native/segment-entry.ts',
    'native/stored-segments.ts',
  ]
  const rooms = [
    'answers',
    'compile',
    'doctor',
    'downloads',
    'events',
    'link',
    'machine',
    'request',
    'settings',
    'store',
    'system-status',
  ].map((room) => `appliance/${room}`)
  const files = ['appliance/appliance-config.ts', 'appliance/appliance-parts.ts']
  return {
    appliance: [...shared, ...rooms, 'appliance/recorder.ts'],
    ...Object.fromEntries(rooms.map((room) => [room, [...shared, ...rooms, ...files]])),
    'appliance/recorder': [...shared, ...rooms, ...files],
    'appliance/recorder.ts': [...shared, ...rooms, 'appliance/recorder', 'appliance/appliance-config.ts'],
  }
}

const files = repositoryFiles()
const sources = files.filter((path) => /^(src|appliance|native)\/.*\.tsx?$/.test(path))

/** File -> the files that it imports, types included; paths from the root. */
type Imports = ReadonlyMap<string, readonly string[]>

const imports: Imports = new Map(sources.map((path) => [path, importsOf(path)]))

function read(path: string): string {
  return readFileSync(join(REPOSITORY_ROOT, path), 'utf8')
}

/** Static and dynamic ones. */
function importsOf(path: string): string[] {
  const specifiers = read(path).matchAll(/(?:from|import\()\s*'(\.[^']+)'/g)
  return [...specifiers].map((match) => normalize(join(dirname(path), match[1] ?? '')))
}

function ruleFor(path: string): string {
  const folder = dirname(path)
  if (path in MAY_IMPORT) return path
  const rule = Object.keys(MAY_IMPORT)
    .filter((name) => folder === name || folder.startsWith(`${name}/`))
    .sort((a, b) => b.length - a.length)[0]
  // Files directly in src/ are the entry points; a new folder below src needs a rule of its own.
  assert.ok(rule && (rule !== 'src' || folder === 'src'), `${path} lies in a folder without import rule`)
  return rule
}

function isWithin(path: string, place: string): boolean {
  return path === place || path.startsWith(`${place}/`)
}

/** Imports across the borders of MAY_IMPORT. A room below a folder is another room when it has a rule of its own. */
function forbiddenImports(imported: Imports): string[] {
  return [...imported].flatMap(([path, targets]) => {
    const rule = ruleFor(path)
    const allowed = MAY_IMPORT[rule] ?? []
    return targets
      .filter((target) => dirname(target) !== rule && !(isWithin(target, rule) && ruleFor(target) === rule))
      .filter((target) => !allowed.some((place) => isWithin(target, place)))
      .map((target) => `${path} imports ${target}`)
  })
}

/** Each circle once, from its first file on. */
function circles(imported: Imports): string[] {
  const found: string[] = []
  const done = new Set<string>()
  const walk = (path: string, way: readonly string[]): void => {
    const at = way.indexOf(path)
    if (at >= 0) found.push([...way.slice(at), path].join(' -> '))
    if (at >= 0 || done.has(path)) return
    for (const target of imported.get(path) ?? []) walk(target, [...way, path])
    done.add(path)
  }
  for (const path of imported.keys()) walk(path, [])
  return found
}

/** Folder -> the other folders that its files import from. */
function roomsOf(paths: readonly string[]): Imports {
  const rooms = Map.groupBy(paths, (path) => dirname(path))
  const needed = (room: string, inside: readonly string[]) =>
    inside
      .flatMap(importsOf)
      .map((target) => dirname(target))
      .filter((folder) => folder !== room && rooms.has(folder))
  return new Map([...rooms].map(([room, inside]) => [room, needed(room, inside)]))
}

/** Folders that hold sources and that the guide, a table whose rows begin with "| `folder`", does not name. */
function unnamedFolders(paths: readonly string[], guide: string): string[] {
  const folders = new Set(paths.filter((path) => path.includes('/')).map((path) => dirname(path)))
  const named = [...guide.matchAll(/`([^`]+)`/g)].map((match) => match[1] ?? '')
  return [...folders].filter((folder) => !named.includes(folder)).sort()
}

function folderGuide(): string {
  const architecture = read('ARCHITECTURE.md')
  const from = architecture.indexOf('## Rooms')
  return architecture.slice(from, architecture.indexOf('\n## ', from + 1))
}

/** Paths and names of files, in backticks, that no file has. */
function missingFiles(text: string, paths: readonly string[]): string[] {
  const names = new Set(paths.flatMap((path) => [path, basename(path)]))
  const folders = new Set(paths.map((path) => dirname(path)))
  return [...text.matchAll(/`([\w./-]+\.(?:ts|cc|h|lua|md|yaml)|(?:src|appliance|native|test)\/[\w./-]+)`/g)]
    .map((match) => match[1] ?? '')
    .filter((name) => !names.has(name) && !folders.has(name))
}

test('nothing but the fixed names lies at the top level', () => {
  const names = new Set(files.map((path) => path.split('/')[0] ?? ''))
  assert.deepEqual(
    [...names].filter((name) => !TOP_LEVEL.has(name) && !name.startsWith('.')),
    [],
  )
})

test('every file imports only what its folder may import', () => {
  assert.ok(sources.length > 20, 'the sources were found')
  assert.deepEqual(forbiddenImports(imports), [])
})

test('the page imports nothing of Node.js, by way of what it shares either', () => {
  const seen = new Set(sources.filter((path) => path.startsWith('src/console/')))
  for (const path of seen) for (const target of imports.get(path) ?? []) seen.add(target)
  assert.ok(seen.has('src/query/download-parameters.ts'))
  assert.deepEqual(
    [...seen].filter((path) => existsSync(join(REPOSITORY_ROOT, path)) && /from 'node:/.test(read(path))),
    [],
  )
})

test('no file imports itself by way of others, types included', () => {
  assert.deepEqual(circles(imports), [])
})

test('the rooms of test/support import one another in one direction only', () => {
  const rooms = roomsOf(files.filter((path) => /^test\/support\/.*\.ts$/.test(path)))
  assert.ok(rooms.size > 10)
  assert.deepEqual(circles(rooms), [])
})

test('ARCHITECTURE.md names every folder that has sources', () => {
  const engineSources = files.filter((path) => /^native\/.*\.(cc|h)$/.test(path))
  assert.deepEqual(unnamedFolders([...sources, ...engineSources], folderGuide()), [])
})

test('every file that ARCHITECTURE.md names is there, and it has 200 lines at most', () => {
  assert.deepEqual(missingFiles(read('ARCHITECTURE.md'), files), [])
  assert.ok(read('ARCHITECTURE.md').trimEnd().split('\n').length <= 200)
})

describe('a planted mistake is seen', () => {
  for (const [from, to] of [
    ['src/query/x.ts', 'src/base/log.ts'],
    ['src/base/x.ts', 'src/http/http-app.ts'],
    ['src/device/x.ts', 'src/fleet/fleet.ts'],
    ['src/routes/x.ts', 'appliance/store/capture-record.ts'],
    ['src/routes/request/x.ts', 'src/routes/access/ticket-handlers.ts'],
    ['src/routes/fleet/x.ts', 'src/routes/downloads/answer-download.ts'],
    ['appliance/answers/x.ts', 'appliance/recorder/store-writer.ts'],
    ['appliance/x.ts', 'appliance/recorder/store-writer.ts'],
    ['native/x.ts', 'src/base/log.ts'],
    ['src/client/x.ts', 'src/http/http-app.ts'],
    ['src/command/client/x.ts', 'src/fetch/body.ts'],
    ['src/command/client/exports/x.ts', 'src/command/client/downloads/download-session.ts'],
    ['src/command/client/output/x.ts', 'src/command/client/run-client.ts'],
    ['src/console/x.ts', 'src/http/http-app.ts'],
  ] as const) {
    test(`${from} imports ${to}`, () => {
      const planted = new Map([[from, ['src/base/error.ts', to]]])
      assert.ok(forbiddenImports(planted).includes(`${from} imports ${to}`))
    })
  }

  test('a circle', () => {
    const planted = new Map([
      ['a.ts', ['b.ts', 'd.ts']],
      ['b.ts', ['c.ts']],
      ['c.ts', ['b.ts']],
      ['d.ts', ['c.ts']],
    ])
    assert.deepEqual(circles(planted), ['b.ts -> c.ts -> b.ts'])
  })

  test('a file that is not there any more', () => {
    const text = 'In `src/a/x.ts`, `y.ts`, `src/a` and `src/b/gone.ts`.'
    assert.deepEqual(missingFiles(text, ['src/a/x.ts', 'src/b/y.ts']), ['src/b/gone.ts'])
  })

  test('a folder that nobody tells of', () => {
    assert.deepEqual(
      unnamedFolders(['src/a/x.ts', 'src/b/y.ts', 'src/b/c/z.ts'], '| `src/a` | |\n| `src/b/c` | |'),
      ['src/b'],
    )
  })
})

test('engine sources include no Node header', () => {
  const engine = files.filter((path) => /^native\/engine\/.*\.(cc|h)$/.test(path))
  assert.ok(engine.length > 10)
  assert.deepEqual(
    engine.filter((path) => /#include [<"](napi|node|uv|v8)/.test(read(path))),
    [],
  )
})

test('file names are unique', () => {
  const names = files
    .filter((path) => /^(src|appliance|native)\/.*\.(tsx?|cc|h|lua)$/.test(path))
    .map((path) => basename(path))
  assert.deepEqual(
    names.filter((name, index) => names.indexOf(name) !== index),
    [],
  )
})

test('every way to start a program gives Node the same options', () => {
  const options = NODE_OPTIONS.join(' ')
  assert.ok(read('src/capfleet').includes(`/node" ${options} "$HERE/cli.ts"`))
})

test('tests mirror the tree', () => {
  const mirrored = files.filter((path) => /^test\/(src|appliance|native)\/.*\.test\.ts$/.test(path))
  assert.ok(mirrored.length > 10)
  const astray = mirrored.filter((path) => {
    const folder = dirname(path).slice('test/'.length)
    return !existsSync(join(REPOSITORY_ROOT, folder))
  })
  assert.deepEqual(astray, [])
})

test('the lock file has an entry for every optional package, so that npm ci accepts it anywhere', () => {
  const { packages } = JSON.parse(read('package-lock.json')) as {
    packages: Record<string, { version: string; optionalDependencies?: Record<string, string> }>
  }
  const wanted = Object.values(packages).flatMap((entry) => Object.keys(entry.optionalDependencies ?? {}))
  assert.ok(wanted.length > 10)
  assert.deepEqual(
    wanted.filter((name) => !packages[`node_modules/${name}`]?.version),
    [],
  )
})

test('the lock file names no download address', () => {
  assert.ok(!read('package-lock.json').includes('"resolved"'))
})

test('every package has a checksum in the lock file, if capfleet may install it', () => {
  const { packages } = JSON.parse(read('package-lock.json')) as {
    packages: Record<string, { readonly integrity?: string; readonly os?: unknown; readonly cpu?: unknown }>
  }
  const runsHere = (os: unknown = 'linux', cpu: unknown = 'x64') =>
    [os].flat().includes('linux') && [cpu].flat().some((one) => one === 'x64' || one === 'arm64')
  const installed = Object.entries(packages).filter(([path, { os, cpu }]) => path !== '' && runsHere(os, cpu))
  assert.ok(installed.length > 50)
  assert.deepEqual(
    installed.filter(([, { integrity }]) => !integrity?.startsWith('sha512-')).map(([path]) => path),
    [],
  )
})

test('no signal is made of others and of a time-out by AbortSignal.any()', () => {
  const makers = sources.filter((path) => /AbortSignal\.any\([^)]*AbortSignal\.timeout/.test(read(path)))
  assert.deepEqual(makers, [], 'Node.js keeps such signals; src/base/joined-signal.ts says why')
})
