/** What every export target must do, as defined in src/gateway/export/target/export-target.ts. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { copyFile, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { test } from 'node:test'
import fc from 'fast-check'
import type {
  ByteRange,
  ExportTarget,
  FilePlace,
  FinishedFile,
} from '../../../src/gateway/export/target/export-target.ts'
import type { ErrorCode } from '../../../src/shared/base/error.ts'
import { madeFile } from './made-file.ts'

export interface TargetStage {
  readonly target: ExportTarget
  /** Where finished files are created. */
  readonly folder: string
}

const NEVER = new AbortController().signal

export async function keep(target: ExportTarget, file: FinishedFile): Promise<void> {
  await target.publish(file, { signal: NEVER })
}

export async function kept(target: ExportTarget, place: FilePlace, range?: ByteRange): Promise<Buffer> {
  return await buffer(await target.open(place, range))
}

export function failsWith(code: ErrorCode) {
  return { name: 'CapfleetError', code }
}

/** The tests of a target; `stage()` is called when a test runs. */
export function testTargetContract(stage: () => TargetStage): void {
  test('a target that can be used passes its check, twice', async () => {
    await stage().target.check()
    await stage().target.check()
  })

  for (const bytes of [0, 1, 300_000]) {
    test(`a file of ${bytes} bytes is kept, whole, and is no more where it was made`, async () => {
      const { target, folder } = stage()
      const file = await madeFile(folder, bytes)
      const content = await readFile(file.path)
      const told: number[] = []
      await target.publish(file, { signal: NEVER, onProgress: (count) => told.push(count) })
      assert.ok((await kept(target, file)).equals(content))
      assert.equal(existsSync(file.path), false)
      assert.equal(told.at(-1), bytes)
    })
  }

  test('any range of a kept file is what it is of its bytes', async () => {
    const { target, folder } = stage()
    const file = await madeFile(folder, 70_000)
    const content = await readFile(file.path)
    await keep(target, file)
    const places = fc.tuple(fc.nat(file.bytes - 1), fc.nat(file.bytes - 1))
    await fc.assert(
      fc.asyncProperty(places, async ([a, b]) => {
        const range = { first: Math.min(a, b), last: Math.max(a, b) }
        const expected = content.subarray(range.first, range.last + 1)
        assert.ok((await kept(target, file, range)).equals(expected))
      }),
      { numRuns: 25, examples: [[[0, file.bytes - 1]], [[file.bytes - 1, file.bytes - 1]], [[0, 0]]] },
    )
  })

  test('what is not there is an unknown export', async () => {
    const { target, folder } = stage()
    const file = await madeFile(folder, 10)
    await assert.rejects(target.open(file), failsWith('unknown-export'))
    await keep(target, file)
    await assert.rejects(target.open({ ...file, name: 'capture.pcap.gz' }), failsWith('unknown-export'))
    await assert.rejects(target.open({ ...file, exportId: randomUUID() }), failsWith('unknown-export'))
  })

  test('keeping a file again does no harm, whether the file was already moved or recreated', async () => {
    const { target, folder } = stage()
    const file = await madeFile(folder, 5_000)
    const content = await readFile(file.path)
    const again = { ...file, path: join(folder, randomUUID()) }
    await copyFile(file.path, again.path)
    await keep(target, file)
    await keep(target, file)
    await keep(target, again)
    assert.ok((await kept(target, file)).equals(content))
    assert.equal(existsSync(again.path), false)
  })

  test('two that keep the same file at the same time do no harm', async () => {
    const { target, folder } = stage()
    for (let round = 0; round < 10; round++) {
      const file = await madeFile(folder, 50_000)
      const content = await readFile(file.path)
      const copy = { ...file, path: join(folder, randomUUID()) }
      await copyFile(file.path, copy.path)
      await Promise.all([keep(target, file), keep(target, file), keep(target, copy)])
      assert.ok((await kept(target, file)).equals(content))
    }
  })

  test('a file takes the place of an earlier one of its name, longer or shorter', async () => {
    const { target, folder } = stage()
    const first = await madeFile(folder, 5_000)
    await keep(target, first)
    for (const bytes of [9_000, 100, 100]) {
      const next = await madeFile(folder, bytes, first)
      const content = await readFile(next.path)
      await keep(target, next)
      assert.ok((await kept(target, first)).equals(content))
    }
  })

  test('a missing file is not taken for kept, whatever else is kept in its place', async () => {
    const { target, folder } = stage()
    const first = await madeFile(folder, 100)
    await keep(target, first)
    const next = await madeFile(folder, 100, first)
    await rm(next.path)
    await assert.rejects(keep(target, next), failsWith('export-target-unavailable'))
  })

  test('a file that is not as long as it should be is not kept', async () => {
    const { target, folder } = stage()
    const file = await madeFile(folder, 100)
    await assert.rejects(keep(target, { ...file, bytes: 101 }), failsWith('internal-error'))
    await assert.rejects(target.open(file), failsWith('unknown-export'))
  })

  test('a cancelled copy keeps nothing and leaves the file', async () => {
    const { target, folder } = stage()
    const file = await madeFile(folder, 100)
    const reason = new Error('cancelled')
    await assert.rejects(target.publish(file, { signal: AbortSignal.abort(reason) }), reason)
    await assert.rejects(target.open(file), failsWith('unknown-export'))
    assert.equal(existsSync(file.path), true)
  })

  test('all files of an export are removed, those of others stay, and repeating it does no harm', async () => {
    const { target, folder } = stage()
    const file = await madeFile(folder, 100)
    const second = await madeFile(folder, 200, { exportId: file.exportId, name: 'capture-2.pcap' })
    const other = await madeFile(folder, 300)
    for (const made of [file, second, other]) await keep(target, made)
    await target.remove(file.exportId)
    await target.remove(file.exportId)
    for (const gone of [file, second]) await assert.rejects(target.open(gone), failsWith('unknown-export'))
    assert.equal((await kept(target, other)).length, 300)
  })

  test('a name or an id that could lead elsewhere is a defect', async () => {
    const { target, folder } = stage()
    const file = await madeFile(folder, 100)
    const defect = { name: 'AssertionError' }
    for (const name of ['../x', 'a/b', '', '.hidden', 'a\n', 'x'.repeat(241)])
      await assert.rejects(target.open({ ...file, name }), defect)
    for (const exportId of ['', '..', file.exportId.toUpperCase(), `${file.exportId}/..`]) {
      await assert.rejects(keep(target, { ...file, exportId }), defect)
      await assert.rejects(target.remove(exportId), defect)
    }
  })
}
