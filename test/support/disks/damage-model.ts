/**
 * A small store with every kind of file, for which the meaning of each byte is known: which packets may be missing if
 * that byte is damaged. Tests copy it, damage the copy, and compare what they read with what was written.
 */
import assert from 'node:assert/strict'
import { cp, mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { basename, dirname, join, relative } from 'node:path'
import { finishedEntries } from '../../../appliance/recorder/writer/finished-entries.ts'
import { HeldCapture } from '../../../appliance/recorder/writer/held-capture.ts'
import { StoreWriter } from '../../../appliance/recorder/writer/store-writer.ts'
import { addAgedOut } from '../../../appliance/store/aged-out-list.ts'
import { storePaths } from '../../../appliance/store/store-paths.ts'
import { importCaptureFiles } from '../../../native/import-capture-files.ts'
import { captureFacts } from '../packets/capture-records.ts'
import { makePacket } from '../packets/packet-maker.ts'
import type { PcapRecord } from '../packets/pcap-records.ts'
import { makePcapng } from '../packets/pcapng-maker.ts'

const START_NS = 1_700_000_000_000_000_000n
const SEGMENT_BYTES = 700_000
const INDEX_HEADER_BYTES = 64
const ENTRY_BYTES = 64
/** A block of a segment is about 256 KB. */
const PACKET_BYTES = 9_000

export interface ModelCapture {
  readonly name: string
  /** All packets as a download returns them. */
  readonly packets: readonly PcapRecord[]
  readonly isActive: boolean
}

interface Block {
  /** Segment path relative to the store, without extension. */
  readonly segment: string
  readonly offset: number
  readonly bytes: number
  readonly number: number
  /** Texts of its packets, unique to them. */
  readonly texts: ReadonlySet<string>
}

export interface DamageModel {
  readonly path: string
  readonly captures: readonly ModelCapture[]
  /** Every file, relative to the store. */
  readonly files: readonly string[]
  /** Packets that may be missing if bytes [from, to) of a file are damaged, and nothing else is. */
  mayLose(file: string, from: number, to: number): ReadonlySet<string>
  /** Where the blocks of a segment's file begin. */
  offsetsOf(file: string): readonly number[]
}

/** Creates the model's captures: an import of one port, one of three, and a capture being recorded. */
export async function makeDamageModel(folder: string, bootId: string): Promise<DamageModel> {
  const path = join(folder, 'model')
  const captures = [
    await importInto(path, folder, { name: 'one', ports: 1, count: 220, first: 0 }),
    await importInto(path, folder, { name: 'three', ports: 3, count: 180, first: 1_000 }),
    await recordInto(path, folder, {
      name: 'live_20261120_0930',
      ports: 2,
      count: 300,
      first: 2_000,
      bootId,
    }),
  ]
  await addAgedOut(storePaths(path), { name: 'gone', startNs: 1n, endNs: 2n })
  await writeFile(storePaths(path).events.newest, '')
  const files = (await filesBelow(path)).filter((file) => !IGNORED.has(basename(file)))
  const blocks = await blocksOf(path, files)
  return {
    path,
    captures,
    files,
    mayLose: (file, from, to) => {
      const lost = blocks.filter((block) => isTouched(block, file, from, to))
      return new Set(lost.flatMap(({ texts }) => [...texts]))
    },
    offsetsOf: (file) =>
      blocks.filter(({ segment }) => file === `${segment}.pcap`).map(({ offset }) => offset),
  }
}

const IGNORED: ReadonlySet<string> = new Set(['recorder.lock', 'recorder.sock', 'recorder-owner.sock'])

/** A copy that a test may damage. */
export async function copyModel(model: DamageModel, to: string): Promise<void> {
  await cp(model.path, to, { recursive: true })
}

/** What identifies a packet of the model. */
export function textOf({ captured }: Pick<PcapRecord, 'captured'>): string {
  return captured.subarray(0, 64).toString('latin1')
}

interface Plan {
  readonly name: string
  readonly ports: number
  readonly count: number
  readonly first: number
}

function packetsOf({ name, ports, count, first }: Plan): readonly (PcapRecord & { readonly port: number })[] {
  return Array.from({ length: count }, (_, i) => ({
    ...makePacket(START_NS + BigInt(first + i) * 1_000_000n, `${name} ${i};`, PACKET_BYTES - (i % 7) * 1_000),
    port: i % ports,
  }))
}

async function importInto(path: string, folder: string, plan: Plan): Promise<ModelCapture> {
  const packets = packetsOf(plan)
  const file = join(folder, `${plan.name}.pcapng`)
  await writeFile(file, makePcapng(plan.ports, packets))
  await using writer = await StoreWriter.open(path, { segmentBytes: SEGMENT_BYTES })
  await writer.importCapture({ name: plan.name, files: [file] })
  return { name: plan.name, packets, isActive: false }
}

/** The last segment of each port is not in the log yet, as while it is being written. */
async function recordInto(
  path: string,
  folder: string,
  plan: Plan & { readonly bootId: string },
): Promise<ModelCapture> {
  const packets = packetsOf(plan)
  const file = join(folder, `${plan.name}.pcapng`)
  await writeFile(file, makePcapng(plan.ports, packets))
  const directory = join(storePaths(path).captures, plan.name)
  await mkdir(directory)
  const { streams } = await importCaptureFiles({ files: [file], directory, segmentBytes: SEGMENT_BYTES })
  assert.ok(streams.every(({ segments }) => segments.length >= 2))
  const finished = streams.map((stream) => ({ ...stream, segments: stream.segments.slice(0, -1) }))
  const [first] = packets
  const facts = captureFacts(plan.name, {
    type: 'capture',
    state: 'active',
    baseName: 'live',
    bootId: plan.bootId,
    startNs: first?.ns ?? 0n,
    endNs: (first?.ns ?? 0n) + 1n,
    createdAt: new Date(Number((first?.ns ?? 0n) / 1_000_000n)).toISOString(),
    sources: [],
  })
  await HeldCapture.create(directory, facts, finishedEntries(finished))
  return { name: plan.name, packets, isActive: true }
}

async function filesBelow(path: string): Promise<readonly string[]> {
  const entries = await readdir(path, { withFileTypes: true, recursive: true })
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => relative(path, join(entry.parentPath, entry.name)))
    .sort()
}

async function blocksOf(path: string, files: readonly string[]): Promise<readonly Block[]> {
  const blocks: Block[] = []
  for (const file of files.filter((name) => name.endsWith('.idx'))) {
    const segment = file.slice(0, -'.idx'.length)
    const index = await readFile(join(path, file))
    const packets = await readFile(join(path, `${segment}.pcap`))
    for (let at = INDEX_HEADER_BYTES; at < index.length; at += ENTRY_BYTES) {
      const [offset, bytes] = [Number(index.readBigUInt64LE(at)), index.readUInt32LE(at + 24)]
      const number = (at - INDEX_HEADER_BYTES) / ENTRY_BYTES
      blocks.push({ segment, offset, bytes, number, texts: textsIn(packets, offset, offset + bytes) })
    }
  }
  return blocks
}

function textsIn(pcap: Buffer, from: number, to: number): ReadonlySet<string> {
  const texts = new Set<string>()
  for (let at = from; at < to; ) {
    const bytes = pcap.readUInt32LE(at + 8)
    texts.add(textOf({ captured: pcap.subarray(at + 16, at + 16 + bytes) }))
    at += 16 + bytes
  }
  return texts
}

/** Packets may be lost with their own bytes, or with the index entry that verifies them; never with anything else. */
function isTouched(
  { segment, offset, bytes, number }: Block,
  file: string,
  from: number,
  to: number,
): boolean {
  if (dirname(segment) !== dirname(file) || !file.startsWith(`${segment}.`)) return false
  if (file.endsWith('.pcap')) return from < offset + bytes && to > offset
  if (!file.endsWith('.idx')) return false
  const at = INDEX_HEADER_BYTES + number * ENTRY_BYTES
  return from < at + ENTRY_BYTES && to > at
}
