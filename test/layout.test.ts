// The folder tree is the architecture: which file may import which, where files may be, and how they are named.
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
  'ARCHITECTURE.md',
  'CONTRIBUTING.md',
  'SECURITY.md',
  'CODE_OF_CONDUCT.md',
  'LICENSE',
  'CHANGELOG.md',
  'RELEASING.md',
  'src',
  'appliance',
  'native',
  'config',
  'docs',
  'examples',
  'test',
  'helm',
])

/** A house: which other houses its files may import, and its rooms from top to bottom. */
interface House {
  readonly imports: readonly string[]
  /** A room may import from the floors below it. A house without floors is one room. A room is a folder or a file. */
  readonly floors?: readonly (readonly string[])[]
}

const HOUSES: Readonly<Record<string, House>> = {
  // The command line, which says which command starts which program.
  src: {
    imports: [
      'src/demo',
      'src/operator',
      'src/client',
      'src/worker',
      'src/gateway',
      'appliance',
      'src/shared',
    ],
  },
  'src/demo': {
    imports: ['src/operator', 'src/client', 'appliance', 'src/shared'],
    floors: [['src/demo'], ['src/demo/traffic']],
  },
  'src/operator': { imports: ['src/client', 'src/gateway', 'appliance', 'src/shared'] },
  'src/worker': {
    imports: ['src/gateway', 'src/shared'],
    floors: [['src/worker'], ['src/worker/run'], ['src/worker/files']],
  },
  'src/gateway': {
    imports: ['native', 'src/shared'],
    floors: [
      ['src/gateway'],
      ['src/gateway/routes'],
      ['src/gateway/routes/downloads'],
      ['src/gateway/routes/access', 'src/gateway/routes/fleet', 'src/gateway/routes/exports'],
      ['src/gateway/routes/request'],
      ['src/gateway/serve', 'src/gateway/export'],
      ['src/gateway/fetch/search', 'src/gateway/auth', 'src/gateway/export/target'],
      ['src/gateway/fetch/body'],
      ['src/gateway/fetch/lines'],
      ['src/gateway/fetch/stream'],
      ['src/gateway/fetch/proof'],
      ['src/gateway/fetch/encoding'],
      ['src/gateway/fleet/questions', 'src/gateway/fleet/events', 'src/gateway/fleet/roster'],
      ['src/gateway/fleet'],
      ['src/gateway/fleet/captures', 'src/gateway/fleet/plan'],
      ['src/gateway/fleet/health', 'src/gateway/lease', 'src/gateway/pcap'],
      ['src/gateway/device', 'src/gateway/redis', 'src/gateway/audit'],
    ],
  },
  appliance: {
    imports: ['native', 'src/shared'],
    floors: [
      ['appliance'],
      ['appliance/recorder.ts'],
      ['appliance/recorder', 'appliance/answers', 'appliance/seen', 'appliance/doctor'],
      ['appliance/recorder/capture', 'appliance/recorder/retention'],
      ['appliance/recorder/writer'],
      ['appliance/recorder/clock'],
      ['appliance/events'],
      ['appliance/system-status'],
      ['appliance/downloads'],
      ['appliance/appliance-config.ts'],
      ['appliance/compile'],
      ['appliance/request'],
      ['appliance/link'],
      ['appliance/store'],
      ['appliance/settings', 'appliance/machine'],
    ],
  },
  'src/client': {
    imports: ['src/shared'],
    floors: [
      ['src/client/command'],
      ['src/client/command/downloads', 'src/client/command/exports'],
      ['src/client/command/access', 'src/client/command/alerts'],
      ['src/client/command/common'],
      ['src/client/command/output'],
      // Without Node.js.
      ['src/client'],
    ],
  },
  // Runs in browsers: code that is shared with parsers of parameters.
  'src/console': {
    imports: [
      'src/shared/query',
      'src/shared/contract',
      'src/shared/base/amounts.ts',
      'src/shared/base/list-text.ts',
      'src/shared/pcap/pcap-sizes.ts',
      'src/shared/pcap/record-cursor.ts',
      'src/dissector/messages.ts',
    ],
  },
  // Runs in a frame of the page, which has nothing else: its licence is another one.
  'src/dissector': { imports: [] },
  native: { imports: ['src/shared/base/error.ts', 'src/shared/pcap/pcap-sizes.ts'] },
  'src/shared': {
    imports: [],
    floors: [
      ['src/shared/auth', 'src/shared/contract'],
      ['src/shared/http', 'src/shared/query/download'],
      ['src/shared/query/flow'],
      ['src/shared/query/filter', 'src/shared/query/time'],
      ['src/shared/query'],
      ['src/shared/pcap'],
      ['src/shared/base'],
    ],
  },
}

/** Folder -> the only file outside that may import from it: no other program may reach the writer of the store. */
const ONLY_FOR: Readonly<Record<string, string>> = { 'appliance/recorder': 'appliance/recorder.ts' }

/** Types of parts that the rooms above have created: any room of the house may import those that it uses. */
const PART_TYPES = new Set(['appliance/appliance-parts.ts'])

const files = repositoryFiles()
const sources = files.filter((path) => /^(src|appliance|native)\/.*\.tsx?$/.test(path))

/** File -> the files that it imports, including type imports; paths from the root. */
type Imports = ReadonlyMap<string, readonly string[]>

const imports: Imports = new Map(sources.map((path) => [path, importsOf(path)]))

function read(path: string): string {
  return readFileSync(join(REPOSITORY_ROOT, path), 'utf8')
}

/** Static and dynamic imports. */
function importsOf(path: string): string[] {
  const specifiers = read(path).matchAll(/(?:from|import\()\s*'(\.[^']+)'/g)
  return [...specifiers].map((match) => normalize(join(dirname(path), match[1] ?? '')))
}

function isWithin(path: string, place: string): boolean {
  return path === place || path.startsWith(`${place}/`)
}

/** The longest room that matches. */
function placeOf(path: string, places: readonly string[]): string | undefined {
  return places.filter((place) => isWithin(path, place)).sort((a, b) => b.length - a.length)[0]
}

function houseOf(path: string): string {
  const house = placeOf(path, Object.keys(HOUSES))
  // src itself may contain only files; a new folder there is a new house.
  assert.ok(house && (house !== 'src' || dirname(path) === 'src'), `${path} lies in no house of HOUSES`)
  return house
}

function roomOf(path: string, house: string): string {
  const rooms = HOUSES[house]?.floors?.flat() ?? [house]
  const room = placeOf(path, rooms)
  // If a house has several rooms, the one with the house's name stands for the files directly in the house.
  const isOpen = room === house && rooms.length > 1
  assert.ok(
    room && (!isOpen || dirname(path) === house),
    `${path} lies in a room that ${house} does not have`,
  )
  return room
}

function mayImport(path: string, target: string): boolean {
  const [house, itsHouse] = [houseOf(path), houseOf(target)]
  const [room, itsRoom] = [roomOf(path, house), roomOf(target, itsHouse)]
  if (room === itsRoom) return true
  const closed = placeOf(target, Object.keys(ONLY_FOR))
  if (closed !== undefined && !isWithin(path, closed) && ONLY_FOR[closed] !== path) return false
  if (house !== itsHouse) return (HOUSES[house]?.imports ?? []).some((place) => isWithin(target, place))
  if (PART_TYPES.has(path) || PART_TYPES.has(target)) return true
  const floorOf = (name: string) => HOUSES[house]?.floors?.findIndex((rooms) => rooms.includes(name)) ?? 0
  return floorOf(room) < floorOf(itsRoom)
}

function forbiddenImports(imported: Imports): string[] {
  return [...imported].flatMap(([path, targets]) =>
    targets.filter((target) => !mayImport(path, target)).map((target) => `${path} imports ${target}`),
  )
}

/** Each circle once, starting at its first file. */
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

/** The headers of the engine that an engine source includes. */
function includesOf(path: string): string[] {
  return [...read(path).matchAll(/^#include "([^"]+)"/gm)].map(([, name]) => `native/engine/${name}`)
}

/** Folder -> the other folders that its files need, by imports or includes. */
function roomsOf(paths: readonly string[], neededBy = importsOf): Imports {
  const rooms = Map.groupBy(paths, (path) => dirname(path))
  const needed = (room: string, inside: readonly string[]) =>
    inside
      .flatMap((path) => neededBy(path))
      .map((target) => dirname(target))
      .filter((folder) => folder !== room && rooms.has(folder))
  return new Map([...rooms].map(([room, inside]) => [room, needed(room, inside)]))
}

/** Folders with sources that the guide (a table whose rows begin with "| `folder`") does not name. */
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

/** Files that may listen for an abort by hand, because addAbortListener() does not work there. */
const ABORT_LISTENERS: readonly string[] = [
  // Runs in browsers and in other places without Node.js.
  'src/console',
  'src/client/gateway-client.ts',
  // An aborted signal must count before the next line, not in a microtask.
  'src/shared/base/joined-signal.ts',
  'src/gateway/device/device-connection.ts',
  // A listener that stays on a signal that belongs to this file.
  'appliance/recorder/conversations.ts',
]

/**
 * Whether the file listens for an abort by hand. That misses signals that are already aborted, and must be undone
 * elsewhere.
 */
function listensByHand(path: string, text: string): boolean {
  return text.includes("addEventListener('abort'") && placeOf(path, ABORT_LISTENERS) === undefined
}

/** Paths and file names in backticks that match no file. */
function missingFiles(text: string, paths: readonly string[]): string[] {
  const names = new Set(paths.flatMap((path) => [path, basename(path)]))
  const folders = new Set(paths.map((path) => dirname(path)))
  return [...text.matchAll(/`([\w./-]+\.(?:ts|cc|h|lua|md|yaml)|(?:src|appliance|native|test)\/[\w./-]+)`/g)]
    .map((match) => match[1] ?? '')
    .filter((name) => !names.has(name) && !folders.has(name))
}

test('only the fixed names are at the top level', () => {
  const names = new Set(files.map((path) => path.split('/')[0] ?? ''))
  assert.deepEqual(
    [...names].filter((name) => !TOP_LEVEL.has(name) && !name.startsWith('.')),
    [],
  )
})

test('every file imports only what its room may import', () => {
  assert.ok(sources.length > 20, 'the sources were found')
  assert.deepEqual(forbiddenImports(imports), [])
})

test('every room of every house has sources', () => {
  const rooms = Object.entries(HOUSES).flatMap(([house, { floors = [[house]] }]) => floors.flat())
  const lived = new Set(sources.map((path) => roomOf(path, houseOf(path))))
  assert.deepEqual(
    rooms.filter((room) => !lived.has(room)),
    [],
  )
})

test('a file that has the types of all parts imports only types from its house', () => {
  for (const path of PART_TYPES) {
    const taken = [...read(path).matchAll(/^import (?!type ).* from '(\.[^']+)'$/gm)]
    const targets = taken.map(([, name = '']) => normalize(join(dirname(path), name)))
    assert.deepEqual(
      targets.filter((target) => houseOf(target) === houseOf(path)),
      [],
    )
  }
})

test('the page and the client of a gateway import nothing of Node.js, by way of what it shares either', () => {
  const isClient = (path: string) => dirname(path) === 'src/client'
  const seen = new Set(sources.filter((path) => path.startsWith('src/console/') || isClient(path)))
  for (const path of seen) for (const target of imports.get(path) ?? []) seen.add(target)
  assert.ok(seen.has('src/shared/query/download/download-parameters.ts'))
  assert.deepEqual(
    [...seen].filter((path) => existsSync(join(REPOSITORY_ROOT, path)) && /from 'node:/.test(read(path))),
    [],
  )
})

test('no file imports itself through others, types included', () => {
  assert.deepEqual(circles(imports), [])
})

test('the rooms of test/support import one another in one direction only', () => {
  const rooms = roomsOf(files.filter((path) => /^test\/support\/.*\.ts$/.test(path)))
  assert.ok(rooms.size > 10)
  assert.deepEqual(circles(rooms), [])
})

test('the rooms of the engine include one another in one direction only', () => {
  const rooms = roomsOf(
    files.filter((path) => /^native\/engine\/.*\.(cc|h)$/.test(path)),
    includesOf,
  )
  assert.ok(rooms.get('native/engine/store/repair')?.includes('native/engine/store'))
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
    ['src/demo/x.ts', 'src/gateway/gateway.ts'],
    ['src/demo/traffic/x.ts', 'src/demo/demo-home.ts'],
    ['src/operator/x.ts', 'src/worker/worker.ts'],
    ['src/worker/x.ts', 'src/client/gateway-client.ts'],
    ['src/worker/run/x.ts', 'src/worker/isolated-job.ts'],
    ['src/gateway/x.ts', 'src/worker/run/run-export.ts'],
    ['src/gateway/x.ts', 'appliance/appliance-config.ts'],
    ['src/gateway/routes/x.ts', 'src/gateway/parts.ts'],
    ['src/gateway/routes/exports/x.ts', 'src/gateway/routes/downloads/answer-download.ts'],
    ['src/gateway/routes/fleet/x.ts', 'src/gateway/routes/access/ticket-handlers.ts'],
    ['src/gateway/routes/request/x.ts', 'src/gateway/routes/access/ticket-handlers.ts'],
    ['src/gateway/routes/request/x.ts', 'src/gateway/routes/gateway-parts.ts'],
    ['src/gateway/serve/x.ts', 'src/gateway/export/export-record.ts'],
    ['src/gateway/fetch/search/x.ts', 'src/gateway/serve/relay.ts'],
    ['src/gateway/fetch/body/x.ts', 'src/gateway/fetch/search/fleet-search.ts'],
    ['src/gateway/fetch/lines/x.ts', 'src/gateway/fetch/body/body.ts'],
    ['src/gateway/fetch/stream/x.ts', 'src/gateway/fetch/lines/line-answer.ts'],
    ['src/gateway/fetch/proof/x.ts', 'src/gateway/fetch/stream/source.ts'],
    ['src/gateway/fetch/encoding/x.ts', 'src/gateway/fetch/proof/shown-filters.ts'],
    ['src/gateway/export/target/x.ts', 'src/gateway/export/export-record.ts'],
    ['src/gateway/fleet/questions/x.ts', 'src/gateway/fetch/encoding/decode.ts'],
    ['src/gateway/fleet/questions/x.ts', 'src/gateway/fleet/events/fleet-events.ts'],
    ['src/gateway/fleet/x.ts', 'src/gateway/fleet/questions/fan-out.ts'],
    ['src/gateway/fleet/x.ts', 'src/gateway/fleet/roster/fleet-roster.ts'],
    ['src/gateway/fleet/captures/x.ts', 'src/gateway/fleet/fleet.ts'],
    ['src/gateway/fleet/plan/x.ts', 'src/gateway/fleet/fleet.ts'],
    ['src/gateway/fleet/health/x.ts', 'src/gateway/fleet/captures/device-captures.ts'],
    ['src/gateway/lease/x.ts', 'src/gateway/fleet/fleet.ts'],
    ['src/gateway/device/x.ts', 'src/gateway/fleet/fleet.ts'],
    ['appliance/x.ts', 'src/gateway/pcap/merge.ts'],
    ['appliance/x.ts', 'appliance/recorder/writer/store-writer.ts'],
    ['appliance/answers/x.ts', 'appliance/recorder/writer/store-writer.ts'],
    ['src/operator/x.ts', 'appliance/recorder/verify-store.ts'],
    ['appliance/recorder.ts', 'appliance/appliance-routes.ts'],
    ['appliance/recorder/x.ts', 'appliance/answers/capture-list.ts'],
    ['appliance/recorder/capture/x.ts', 'appliance/recorder/conversations.ts'],
    ['appliance/recorder/capture/x.ts', 'appliance/recorder/retention/retention.ts'],
    ['appliance/recorder/retention/x.ts', 'appliance/recorder/capture/recording.ts'],
    ['appliance/recorder/writer/x.ts', 'appliance/recorder/retention/store-room.ts'],
    ['appliance/recorder/clock/x.ts', 'appliance/recorder/writer/store-writer.ts'],
    ['appliance/events/x.ts', 'appliance/answers/capture-list.ts'],
    ['appliance/system-status/x.ts', 'appliance/events/event-feed.ts'],
    ['appliance/downloads/x.ts', 'appliance/system-status/status-groups.ts'],
    ['appliance/appliance-config.ts', 'appliance/downloads/stream-limit.ts'],
    ['appliance/compile/x.ts', 'appliance/downloads/stream-limit.ts'],
    ['appliance/request/x.ts', 'appliance/compile/compile-queue.ts'],
    ['appliance/link/x.ts', 'appliance/request/hidden-path.ts'],
    ['appliance/store/x.ts', 'appliance/link/recorder-client.ts'],
    ['appliance/machine/x.ts', 'appliance/settings/capture-config.ts'],
    ['src/client/x.ts', 'src/gateway/fetch/body/body.ts'],
    ['src/client/x.ts', 'src/client/command/common/run-client.ts'],
    ['src/client/command/x.ts', 'src/operator/user-command.ts'],
    ['src/client/command/exports/x.ts', 'src/client/command/downloads/download-session.ts'],
    ['src/client/command/access/x.ts', 'src/client/command/downloads/download-session.ts'],
    ['src/client/command/alerts/x.ts', 'src/client/command/downloads/get-alerts.ts'],
    ['src/client/command/common/x.ts', 'src/client/command/access/connect.ts'],
    ['src/client/command/output/x.ts', 'src/client/command/common/run-client.ts'],
    ['src/console/x.ts', 'src/shared/http/http-app.ts'],
    ['src/console/x.ts', 'src/client/gateway-client.ts'],
    ['native/x.ts', 'src/shared/base/log.ts'],
    ['src/shared/contract/x.ts', 'src/gateway/routes/routes.ts'],
    ['src/shared/contract/x.ts', 'src/shared/auth/bounds.ts'],
    ['src/shared/query/download/x.ts', 'src/shared/http/http-app.ts'],
    ['src/shared/query/flow/x.ts', 'src/shared/query/download/download-query.ts'],
    ['src/shared/query/filter/x.ts', 'src/shared/query/flow/flow-filter.ts'],
    ['src/shared/query/filter/x.ts', 'src/shared/query/time/query-time.ts'],
    ['src/shared/query/time/x.ts', 'src/shared/query/filter/address-list.ts'],
    ['src/shared/query/x.ts', 'src/shared/query/time/query-time.ts'],
    ['src/shared/base/x.ts', 'src/shared/http/http-app.ts'],
  ] as const) {
    test(`${from} imports ${to}`, () => {
      const planted = new Map([[from, [to]]])
      assert.deepEqual(forbiddenImports(planted), [`${from} imports ${to}`])
    })
  }

  test('a folder that has no house, and one that is no room of its house', () => {
    for (const path of [
      'src/new/x.ts',
      'src/gateway/new/x.ts',
      'src/gateway/fetch/x.ts',
      'appliance/new/x.ts',
    ])
      assert.throws(() => forbiddenImports(new Map([[path, ['src/shared/base/error.ts']]])), /lies in/)
  })

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

  test('a listener for an abort that is added by hand', () => {
    const text = "signal.addEventListener('abort', stop, { once: true })"
    assert.ok(listensByHand('src/gateway/x.ts', text))
    assert.ok(!listensByHand('src/console/base/x.ts', text))
    assert.ok(!listensByHand('src/gateway/x.ts', 'addAbortListener(signal, stop)'))
  })

  test('a folder that the guide does not list', () => {
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

test('what listens for an abort does so by addAbortListener()', () => {
  const own = sources.filter((path) => !path.startsWith('native/'))
  assert.deepEqual(
    own.filter((path) => listensByHand(path, read(path))),
    [],
  )
  const listening = own.filter((path) => read(path).includes("addEventListener('abort'"))
  assert.deepEqual(
    ABORT_LISTENERS.filter((place) => !listening.some((path) => isWithin(path, place))),
    [],
    'these do not listen by hand any more',
  )
})

test('no signal is made of others and of a time-out by AbortSignal.any()', () => {
  const makers = sources.filter((path) => /AbortSignal\.any\([^)]*AbortSignal\.timeout/.test(read(path)))
  assert.deepEqual(makers, [], 'Node.js keeps such signals; src/shared/base/joined-signal.ts says why')
})
