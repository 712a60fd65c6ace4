// What the end of an exported pcapng file says is missing.
import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import type { ExportWindow, Hole } from '../../../../src/gateway/export/export-record.ts'
import { PcapngEnd } from '../../../../src/shared/pcap/pcapng-end.ts'
import { joinBlocks } from '../../../../src/worker/files/join-blocks.ts'
import { ResultFiles } from '../../../../src/worker/files/result-files.ts'
import { storedOrder } from '../../../support/exports/stored-order.ts'
import { makePacket, makePcap } from '../../../support/packets/packet-maker.ts'
import { tempFolder } from '../../../support/temp-folder.ts'

const BEGIN_NS = 1_790_000_000_000_000_000n
const at = (seconds: number): string => String(BEGIN_NS + BigInt(seconds) * 1_000_000_000n)

const ORDER = storedOrder({
  id: 'a',
  target: 'here',
  plan: {
    kind: 'timerange',
    query: `TSBegin=${at(0)}&TSEnd=${at(100)}&TSUnit=nanos&Format=pcapng`,
    capturesMax: null,
    forcedFilters: [],
    devices: ['a', 'b'],
  },
})
/** The only one that is filled: of the device b, which was away for a quarter of the time. */
const WINDOW: ExportWindow = {
  index: 0,
  piece: 0,
  beginNs: at(0),
  endNs: at(25),
  isWholePiece: false,
  endsPiece: true,
  header: null,
  leftOut: ['a'],
  isFill: true,
}
const LATER: Hole = {
  fromNs: at(75),
  toNs: at(100),
  final: true,
  error: { code: 'store-corrupt', detail: '3 blocks are damaged' },
}

async function endOf(window: ExportWindow): Promise<readonly string[]> {
  await using folder = await tempFolder()
  const span = join(folder.path, 'b.pcap')
  await writeFile(span, makePcap([makePacket(BEGIN_NS + 1n, 'b', 80)]))
  const { signal } = new AbortController()
  await using into = await ResultFiles.open({
    folder: folder.path,
    compression: 'none',
    partBytes: undefined,
    signal,
    fileCount: 0,
    openFile: null,
    isHandedOver: true,
  })
  await joinBlocks(
    {
      order: ORDER,
      window,
      spans: [{ device: 'b', path: span, alignNs: undefined }],
      devices: [
        { device: 'a', holes: [LATER] },
        { device: 'b', holes: [] },
      ],
      siteOf: () => undefined,
      nextNs: undefined,
      nameOf: (part) => `file-${part}.pcapng`,
      signal,
    },
    into,
  )
  await into.endFile()
  const [made] = into.takeMade()
  assert.ok(made !== undefined && 'path' in made)
  const end = new PcapngEnd('the file')
  end.feed(await readFile(made.path))
  return end.comments ?? []
}

test('a hole that a fill leaves open is named, also after the last window that was filled', async () => {
  const [first, ...others] = await endOf(WINDOW)
  assert.equal(first, '1 packets, incomplete; damaged blocks of a are missing')
  assert.match(others.join(), /^capfleet missing: packets of a from .*: 3 blocks are damaged/)
})
