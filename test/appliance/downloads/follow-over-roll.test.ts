// A followed download while the recorder rolls: the next capture follows the first without a gap.
import assert from 'node:assert/strict'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, test } from 'node:test'
import type { FlushState } from '../../../appliance/downloads/flush-watch.ts'
import { FollowedDownload } from '../../../appliance/downloads/followed-download.ts'
import type { PreparedDownload } from '../../../appliance/downloads/prepare-download.ts'
import { selectStreams } from '../../../appliance/downloads/select-streams.ts'
import type { StoredCapture } from '../../../appliance/store/stored-capture.ts'
import { Download } from '../../../native/addon.ts'
import { importCaptureFiles } from '../../../native/import-capture-files.ts'
import type { DownloadQuery } from '../../../src/shared/query/download/download-query.ts'
import { parseDownloadQuery } from '../../../src/shared/query/download/parse-download-query.ts'
import { parseQueryString } from '../../../src/shared/query/parse-query-string.ts'
import { captureRecord } from '../../support/packets/capture-records.ts'
import { makePacket, makePcap } from '../../support/packets/packet-maker.ts'
import { readPcap } from '../../support/packets/pcap-records.ts'
import { tempFolder } from '../../support/temp-folder.ts'

const START_NS = 1_700_000_000_000_000_000n
const at = (i: number): bigint => START_NS + BigInt(i) * 1_000_000n
const range = (from: number, to: number): number[] => Array.from({ length: to - from }, (_, i) => from + i)

const folder = await tempFolder()
after(() => folder[Symbol.asyncDispose]())

async function storedCapture(name: string, from: number, to: number): Promise<StoredCapture> {
  const file = join(folder.path, `${name}.pcap`)
  const directory = join(folder.path, name)
  await mkdir(directory)
  await writeFile(file, makePcap(range(from, to).map((i) => makePacket(at(i), `packet ${i}`))))
  const { streams } = await importCaptureFiles({ files: [file], directory })
  return captureRecord(name, { startNs: at(from), endNs: at(to), streams })
}

const first = await storedCapture('first', 0, 10)
const second = await storedCapture('second', 10, 20)

/** The recorder's answers in turn, each with the captures that the store then holds. */
const SCRIPT: readonly (FlushState & { readonly captures: readonly StoredCapture[] })[] = [
  { isCapturing: true, name: 'first', flushedNs: at(5), captures: [first] },
  { isCapturing: true, name: '', flushedNs: at(8), captures: [first] },
  { isCapturing: true, name: 'second', flushedNs: at(9), captures: [second, first] },
  { isCapturing: true, name: 'second', flushedNs: at(15), captures: [second, first] },
  { isCapturing: true, name: 'second', flushedNs: at(30), captures: [second, first] },
]

async function follow(query: DownloadQuery): Promise<{ readonly numbers: number[]; readonly asked: number }> {
  let asked = 0
  const now = () => SCRIPT[Math.min(asked, SCRIPT.length) - 1]
  const prepare = async (step: DownloadQuery): Promise<PreparedDownload> => {
    const captures = now()?.captures ?? []
    const chosen = captures.filter(({ name }) => step.captureName === undefined || step.captureName === name)
    const folderOf = ({ name }: StoredCapture) => join(folder.path, name)
    return {
      query: step,
      selection: selectStreams(chosen, { query: step, folderOf }),
      agedOutBeforeNs: undefined,
      captureName: 'roll',
      fileName: 'followed.pcap',
      program: undefined,
      addresses: undefined,
      regex: undefined,
      mac48LimitNs: 0n,
    }
  }
  const followed = await FollowedDownload.open(query, {
    flushes: {
      next: async () => {
        asked += 1
        const state = now()
        assert.ok(state)
        return state
      },
    },
    prepare,
    open: ({ query: step, selection }) =>
      Download.open({
        streams: selection.streams,
        beginNs: step.beginNs,
        endNs: step.endNs,
        timeResolution: 'nsec',
        compression: 'none',
      }),
  })
  const pieces: Buffer[] = []
  for (let chunk = await followed.next(); chunk !== undefined; chunk = await followed.next()) {
    pieces.push(Buffer.from(chunk.bytes))
    chunk.release()
  }
  const { records } = readPcap(Buffer.concat(pieces))
  assert.equal(followed.totals().packets, BigInt(records.length))
  return { numbers: records.map(({ ns }) => Number((ns - START_NS) / 1_000_000n)), asked }
}

const parse = (kind: 'timerange' | 'single', text: string): DownloadQuery =>
  parseDownloadQuery(kind, parseQueryString(`${text}&Follow=1`), { zone: 'UTC', nowNs: START_NS })

test('a time range continues with the next capture', async () => {
  const { numbers, asked } = await follow(parse('timerange', `TSBegin=${at(2)}&TSEnd=${at(18)}`))
  assert.deepEqual(numbers, range(2, 18))
  assert.equal(asked, 5)
})

test('a capture ends with everything that it held', async () => {
  const { numbers, asked } = await follow(parse('single', 'StreamName=first'))
  assert.deepEqual(numbers, range(0, 10))
  assert.equal(asked, 3)
})
