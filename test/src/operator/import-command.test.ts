// `capfleet import` as a user runs it, with one bad file among many.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdir, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { readCapture } from '../../../appliance/store/read-capture.ts'
import { captureNameOf } from '../../../src/client/command/common/capture-name-of.ts'
import { CAPTURE_NAME } from '../../../src/shared/query/capture-name-rule.ts'
import { makePacket, makePcap } from '../../support/packets/packet-maker.ts'
import { hostedClient, type TempClient } from '../../support/processes/client-process.ts'
import { REPOSITORY_ROOT } from '../../support/repository-files.ts'
import { tempFolder } from '../../support/temp-folder.ts'

const FILES = 60
const BAD = 3

interface Ended {
  readonly status: number | null
  readonly stderr: string
}

let client: TempClient
before(async () => {
  client = await hostedClient()
})
after(() => client[Symbol.asyncDispose]())

const capfleetImport = (...args: readonly string[]): Promise<Ended> =>
  client.run(['import', '--create', ...args])

/** Captures of one packet each, the third of which is invalid. */
async function manyFiles(folder: string): Promise<readonly string[]> {
  const paths: string[] = []
  for (let number = 1; number <= FILES; number++) {
    const path = join(folder, `f${number}.pcap`)
    const bytes = makePcap([makePacket(BigInt(number) * 1_000_000_000n, `packet ${number}`, 60)])
    await writeFile(path, number === BAD ? 'this is no capture file' : bytes)
    paths.push(path)
  }
  return paths
}

test('many files of which the third is invalid: the others become captures, it is named, status 1', async () => {
  await using folder = await tempFolder()
  const store = join(folder.path, 'store')
  const paths = await manyFiles(folder.path)
  const { status, stderr } = await capfleetImport(...paths, '--store', store)
  assert.equal(status, 1)
  assert.match(stderr, /^import: \S*\/f3\.pcap is neither PCAP nor pcapng.*\[bad-capture-file\]$/m)
  assert.match(stderr, /^capfleet: not everything was imported; .*: 1 \[bad-capture-file\]$/m)
  const names = await readdir(join(store, 'captures'))
  assert.deepEqual(
    names.toSorted(),
    paths
      .map((path) => captureNameOf(path))
      .filter((name) => name !== 'f3')
      .toSorted(),
  )
})

test('the same as one capture: it is made of the others, the third is named, status 1', async () => {
  await using folder = await tempFolder()
  const store = join(folder.path, 'store')
  const paths = await manyFiles(folder.path)
  const { status, stderr } = await capfleetImport(...paths, '--store', store, '--name', 'all')
  assert.equal(status, 1)
  assert.match(stderr, /^import all: f3\.pcap was left out: .* is neither PCAP nor pcapng/m)
  assert.deepEqual(await readdir(join(store, 'captures')), ['all'])
  const read = await readCapture(join(store, 'captures', 'all'), 'all', { isWritten: false })
  assert.ok(read)
  const { record, table } = read
  assert.equal(table.packets, BigInt(FILES - 1))
  assert.equal(record.sources.length, FILES - 1)
  assert.deepEqual([record.damages.length, record.damages[0]?.file], [1, 'f3.pcap'])
})

test('of files that are all none nothing is made, and each is named', async () => {
  await using folder = await tempFolder()
  const store = join(folder.path, 'store')
  const paths = ['a.txt', 'b.txt'].map((name) => join(folder.path, name))
  for (const path of paths) await writeFile(path, 'text')
  for (const name of [[], ['--name', 'all']]) {
    const { status, stderr } = await capfleetImport(...paths, '--store', store, ...name)
    assert.equal(status, 1)
    for (const path of paths) assert.ok(stderr.includes(`${path} is neither`), stderr)
    assert.deepEqual(await readdir(join(store, 'captures')), [])
  }
})

test('a name that is taken costs the others nothing either', async () => {
  await using folder = await tempFolder()
  const store = join(folder.path, 'store')
  const bytes = makePcap([makePacket(1n, 'one', 60)])
  await mkdir(join(folder.path, 'again'))
  const paths = ['a.pcap', 'again/a.pcap', 'z.pcap'].map((name) => join(folder.path, name))
  for (const path of paths) await writeFile(path, bytes)
  const { status, stderr } = await capfleetImport(...paths, '--store', store)
  assert.equal(status, 1)
  assert.match(stderr, /^import: a: a capture with this name already exists.*\[capture-exists\]$/m)
  assert.deepEqual((await readdir(join(store, 'captures'))).toSorted(), ['a', 'z'])
})

test('every file name becomes a capture name, different ones of other alphabets different names', async () => {
  for (const [file, name] of [
    ['dump.2026.pcapng.gz', 'dump.2026'],
    ['x.pcap.lz4', 'x'],
    ['x.cap.XZ', 'x'],
    ['x.pcap.bz2', 'x'],
    ['my file.pcap', 'my_file'],
    ['Zürich.pcap', 'Zurich'],
    ['___.pcap', 'import-'],
    ['数据.pcap', 'import-'],
    ['データ1.pcap', '1-'],
    [`${'n'.repeat(80)}.pcap`, 'n'.repeat(64)],
    [`${'n'.repeat(80)}д.pcap`, `${'n'.repeat(55)}-`],
  ] as const) {
    assert.ok(captureNameOf(`/some/${file}`).startsWith(name), `${file}: ${captureNameOf(file)}`)
    assert.match(captureNameOf(file), CAPTURE_NAME)
  }
  assert.notEqual(captureNameOf('数据1.pcap'), captureNameOf('資料1.pcap'))
})

test('a file without packets becomes no capture, which is said', async () => {
  await using folder = await tempFolder()
  const store = join(folder.path, 'store')
  const paths = ['empty.pcap', 'a.pcap'].map((name) => join(folder.path, name))
  await writeFile(paths[0] ?? '', makePcap([]))
  await writeFile(paths[1] ?? '', makePcap([makePacket(1n, 'one', 60)]))
  const { status, stderr } = await capfleetImport(...paths, '--store', store)
  assert.equal(status, 1)
  assert.match(stderr, /^import: \S*\/empty\.pcap contains no packets \[bad-capture-file\]$/m)
  assert.deepEqual(await readdir(join(store, 'captures')), ['a'])
})

test('joined files are one capture, which is said', async () => {
  await using folder = await tempFolder()
  const store = join(folder.path, 'store')
  const path = join(folder.path, 'joined.pcap')
  const one = makePcap([makePacket(1n, 'one', 60)])
  await writeFile(path, Buffer.concat([one, one]))
  const { status, stderr } = await capfleetImport(path, '--store', store)
  assert.equal(status, 0, stderr)
  assert.match(stderr, /^import joined: joined\.pcap consists of capture files, one after another: 2$/m)
  const read = await readCapture(join(store, 'captures', 'joined'), 'joined', { isWritten: false })
  assert.equal(read?.table.packets, 2n)
  assert.equal(read?.record.notes?.length, 1)
})

for (const program of ['gzip', 'zstd', 'xz', 'lz4', 'bzip2']) {
  test(`a file compressed by ${program} is imported`, async (t) => {
    const bytes = makePcap([makePacket(1n, 'one', 60), makePacket(2n, 'two', 60)])
    const packed = spawnSync(program, ['-c'], { input: bytes })
    if (packed.error !== undefined) return t.skip(`${program} is not installed`)
    await using folder = await tempFolder()
    const store = join(folder.path, 'store')
    const path = join(folder.path, 'a.pcap.packed')
    await writeFile(path, packed.stdout)
    const { status, stderr } = await capfleetImport(path, '--store', store, '--name', 'a')
    assert.equal(status, 0, stderr)
    const read = await readCapture(join(store, 'captures', 'a'), 'a', { isWritten: false })
    assert.equal(read?.table.packets, 2n)
  })
}

/** Runs a command line in a shell, with "$capfleet" and the store's options. */
function inShell(line: string, cwd: string): Ended {
  const capfleet = `${process.execPath} ${join(REPOSITORY_ROOT, 'src/cli.ts')} import --create --store store`
  const { status, stderr } = spawnSync('bash', ['-c', line], {
    cwd,
    encoding: 'utf8',
    env: { ...process.env, capfleet },
  })
  return { status, stderr }
}

test('a pipe is imported: standard input, and a path that is one', async () => {
  await using folder = await tempFolder()
  await writeFile(join(folder.path, 'a.pcap'), makePcap([makePacket(1n, 'one', 60)]))
  for (const [line, name] of [
    ['gzip -c a.pcap | $capfleet - --name piped', 'piped'],
    ['$capfleet /dev/stdin --name stdin < <(cat a.pcap)', 'stdin'],
    ['$capfleet <(cat a.pcap) --name substituted', 'substituted'],
    ['$capfleet - --name redirected < a.pcap', 'redirected'],
  ] as const) {
    const { status, stderr } = inShell(line, folder.path)
    assert.equal(status, 0, stderr)
    assert.match(stderr, new RegExp(`^import ${name}: 1 packet from `, 'm'))
  }
  assert.deepEqual((await readdir(join(folder.path, 'store/captures'))).toSorted(), [
    ...['piped', 'redirected', 'stdin', 'substituted'],
  ])
})

test('a file that grows too much is refused with advice that can be followed', async () => {
  await using folder = await tempFolder()
  const header = makePcap([])
  await writeFile(join(folder.path, 'a.pcap.gz'), gzipSync(Buffer.concat([header, Buffer.alloc(2 ** 27)])))
  const { status, stderr } = inShell('$capfleet a.pcap.gz', folder.path)
  assert.equal(status, 1)
  assert.match(
    stderr,
    /^import: .*a\.pcap\.gz was rejected: .*; if the file is as intended, decompress it and import the result, or raise imports\.maxRatio in the appliance's configuration, and import while its recorder is running \[bad-capture-file\]$/m,
  )
})

test('a pipe without a name, or beside other files, is refused with the way out', async () => {
  await using folder = await tempFolder()
  await writeFile(join(folder.path, 'a.pcap'), makePcap([makePacket(1n, 'one', 60)]))
  const unnamed = inShell('cat a.pcap | $capfleet -', folder.path)
  assert.equal(unnamed.status, 1)
  assert.match(unnamed.stderr, /standard input has no name; give the capture one with --name/)
  assert.deepEqual(await readdir(folder.path), ['a.pcap'], 'no store is created')
  const beside = inShell('cat a.pcap | $capfleet - a.pcap --name both', folder.path)
  assert.equal(beside.status, 1)
  assert.match(beside.stderr, /a pipe must be the only input of a capture/)
  const broken = inShell('head -c 5 a.pcap | $capfleet - --name broken', folder.path)
  assert.equal(broken.status, 1)
  assert.match(broken.stderr, /^import: stdin ends inside the PCAP file header \[bad-capture-file\]$/m)
  assert.deepEqual(await readdir(join(folder.path, 'store/captures')), [])
})

test('whole files end with status 0 and no complaint', async () => {
  await using folder = await tempFolder()
  const path = join(folder.path, 'a.pcap')
  await writeFile(path, makePcap([makePacket(1n, 'one', 60)]))
  const { status, stderr } = await capfleetImport(path, '--store', join(folder.path, 'store'))
  assert.deepEqual([status, stderr.includes('not everything')], [0, false])
})
