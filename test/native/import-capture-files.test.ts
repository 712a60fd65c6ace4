import assert from 'node:assert/strict'
import { mkdir, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { type ImportProgress, importCaptureFiles } from '../../native/import-capture-files.ts'
import { writeBigCapture } from '../support/packets/big-capture.ts'
import { importStreams } from '../support/packets/import-streams.ts'
import { tempFolder } from '../support/temp-folder.ts'

test('an import reports progress, and says so when an input is no capture', async () => {
  await using root = await tempFolder()
  const text = join(root.path, 'notes.txt')
  await writeFile(text, 'these are not packets')
  await assert.rejects(importStreams(root.path, [text]), { code: 'bad-capture-file', message: /notes\.txt/ })
  const big = await writeBigCapture(join(root.path, 'big.pcap'), 20_000)
  const seen: ImportProgress[] = []
  await mkdir(join(root.path, 'c'))
  await importCaptureFiles({
    files: [join(root.path, 'big.pcap')],
    directory: join(root.path, 'c'),
    onProgress: (progress) => seen.push(progress),
  })
  assert.deepEqual(seen.at(-1), {
    inputBytes: BigInt(big.bytes),
    totalInputBytes: BigInt(big.bytes),
    packets: 20_000n,
  })
})

test('an aborted import rejects with the reason and leaves nothing', async () => {
  await using root = await tempFolder()
  const file = join(root.path, 'big.pcap')
  await writeBigCapture(file, 60_000)
  const directory = join(root.path, 'c')
  await mkdir(directory)
  const reason = new Error('no longer wanted')
  await assert.rejects(
    importCaptureFiles({ files: Array(20).fill(file), directory, signal: AbortSignal.abort(reason) }),
    reason,
  )
  const abort = new AbortController()
  const onProgress = () => abort.abort(reason)
  await assert.rejects(
    importCaptureFiles({ files: Array(20).fill(file), directory, signal: abort.signal, onProgress }),
    reason,
  )
  assert.deepEqual(await readdir(directory), [])
})
