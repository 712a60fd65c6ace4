// `capfleet import` as a user runs it, with one bad file among many.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdir, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { readCapture } from '../../../appliance/store/read-capture.ts'
import { captureNameOf } from '../../../src/operator/import-command.ts'
import { makePacket, makePcap } from '../../support/packets/packet-maker.ts'
import { REPOSITORY_ROOT } from '../../support/repository-files.ts'
import { tempFolder } from '../../support/temp-folder.ts'

const FILES = 500
const BAD = 3

interface Ended {
  readonly status: number | null
  readonly stderr: string
}

function capfleetImport(...args: readonly string[]): Promise<Ended> {
  return new Promise((resolve) => {
    const child = execFile(
      process.execPath,
      [join(REPOSITORY_ROOT, 'src/cli.ts'), 'import', '--create', ...args],
      { maxBuffer: 1 << 26 },
      (_error, _stdout, stderr) => resolve({ status: child.exitCode, stderr }),
    )
  })
}

/** 500 captures of one packet each, the third of which is invalid. */
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

test('500 files of which the third is invalid: the others become captures, it is named, status 1', async () => {
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

test('the same 500 as one capture: it is made of the others, the third is named, status 1', async () => {
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

test('a name that is taken, and a file of whose name none can be made, cost the others nothing either', async () => {
  await using folder = await tempFolder()
  const store = join(folder.path, 'store')
  const bytes = makePcap([makePacket(1n, 'one', 60)])
  await mkdir(join(folder.path, 'again'))
  const paths = ['a.pcap', '___.pcap', 'again/a.pcap', 'z.pcap'].map((name) => join(folder.path, name))
  for (const path of paths) await writeFile(path, bytes)
  const { status, stderr } = await capfleetImport(...paths, '--store', store)
  assert.equal(status, 1)
  assert.match(stderr, /no capture name can be made from .*___\.pcap; give one with --name \[bad-parameter\]/)
  assert.match(stderr, /^import: a: a capture with this name already exists.*\[capture-exists\]$/m)
  assert.deepEqual((await readdir(join(store, 'captures'))).toSorted(), ['a', 'z'])
})

test('whole files end with status 0 and no complaint', async () => {
  await using folder = await tempFolder()
  const path = join(folder.path, 'a.pcap')
  await writeFile(path, makePcap([makePacket(1n, 'one', 60)]))
  const { status, stderr } = await capfleetImport(path, '--store', join(folder.path, 'store'))
  assert.deepEqual([status, stderr.includes('not everything')], [0, false])
})
