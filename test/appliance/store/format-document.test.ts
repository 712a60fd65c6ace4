// The example log in native/FORMAT.md is what the recorder writes.
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { SegmentLogWriter } from '../../../appliance/recorder/writer/segment-log-writer.ts'
import { SegmentTable } from '../../../appliance/store/segment-table.ts'
import { LogEntryKind, sealLogEntries } from '../../../native/segment-entry.ts'
import { REPOSITORY_ROOT } from '../../support/repository-files.ts'
import { tempFolder } from '../../support/temp-folder.ts'

test('the example of segments.log', async () => {
  await using folder = await tempFolder()
  const path = join(folder.path, 'segments.log')
  const table = new SegmentTable()
  const log = await SegmentLogWriter.create(path, table)
  const entry = {
    kind: LogEntryKind.finished,
    port: 2,
    flags: 0,
    number: 1,
    minNs: 1_700_000_000_123_456_789n,
    maxNs: 1_700_000_001_000_000_000n,
    packets: 2n,
    bytes: 76n,
    linkType: 1,
    snaplen: 262_144,
    sideBytes: 128 + 15 + 24,
    checksum: 0x869f54de,
  }
  await log.append([entry], table)
  const written = await readFile(path)
  const document = await readFile(join(REPOSITORY_ROOT, 'native/FORMAT.md'), 'utf8')
  const example = /```hex segments.log\n([\s\S]*?)```/.exec(document)?.[1] ?? ''
  // The id is random.
  Buffer.from('000102030405060708090a0b0c0d0e0f', 'hex').copy(written, 16)
  sealLogEntries(written.subarray(0, 64), 0)
  assert.equal(`${hexLines(written.subarray(0, 128)).join('\n')}\n`, example)
  assert.ok(written.subarray(128).every((byte) => byte === 0))
})

/** As printed by `hexdump -C`, without the text. */
function hexLines(bytes: Buffer): string[] {
  return Array.from({ length: bytes.length / 16 }, (_, line) => {
    const hex = [...bytes.subarray(line * 16, line * 16 + 16)].map((byte) =>
      byte.toString(16).padStart(2, '0'),
    )
    const offset = (line * 16).toString(16).padStart(8, '0')
    return `${offset}  ${hex.slice(0, 8).join(' ')}  ${hex.slice(8).join(' ')}`
  })
}
