// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-or-later
/**
 * Runs in the frame of the dissector, which has an origin of its own and no network: it receives Wireshark's module
 * and the packets from the page, and answers its orders.
 */
import type { Order, PacketDetails, PacketRows, Reply, Started, TreeField } from './messages.ts'
import {
  type LoadWiregasm,
  taken,
  type Wiregasm,
  type WiregasmField,
  type WiregasmPacket,
  type WiregasmSession,
} from './wiregasm.ts'

declare const loadWiregasm: LoadWiregasm

// No policy forbids WebRTC, which sends to any host: a dissector that hostile packets have taken over must not have it.
for (const name of ['RTCPeerConnection', 'webkitRTCPeerConnection']) Reflect.deleteProperty(self, name)

/** A display filter that Wireshark rejects, with its message. */
class FilterMistake extends Error {}

let wiregasm: Wiregasm | undefined
let session: WiregasmSession | undefined
let earlier: Promise<void> = Promise.resolve()

addEventListener('message', ({ source, data }: MessageEvent<Order>) => {
  if (source !== parent) return
  earlier = earlier.then(() => replyTo(data))
})

async function replyTo(order: Order): Promise<void> {
  const { id } = order
  try {
    tell({ id, answer: await answerTo(order) })
  } catch (error) {
    tell(error instanceof FilterMistake ? { id, mistake: error.message } : { id, failure: String(error) })
  }
}

/** The page has no name that the frame could address; it checks which frame a message is from. */
function tell(reply: Reply): void {
  parent.postMessage(reply, '*')
}

function answerTo(order: Order): Promise<Started> | Extract<Reply, { answer: unknown }>['answer'] {
  switch (order.kind) {
    case 'start':
      return start(order)
    case 'open':
      return open(order)
    case 'rows':
      return rowsOf(order)
    case 'packet':
      return detailsOf(order.number)
    case 'follow':
      return follow(order)
  }
}

async function start({ wasm, data }: Order<'start'>): Promise<Started> {
  const silent = (): void => undefined
  wiregasm = await loadWiregasm({
    wasmBinary: wasm,
    getPreloadedPackage: () => data,
    locateFile: (name) => name,
    print: silent,
    printErr: silent,
    handleStatus: silent,
  })
  if (!wiregasm.init()) throw new Error('Wireshark does not initialise')
  return { version: wiregasm.wiresharkVersion(), columns: taken(wiregasm.getColumns(), String) }
}

/** Wireshark can only separate interfaces together with MAC addresses ("MI"). */
const SEPARATION = { module: 'protocols', key: 'conversation_deinterlacing_key', on: '.MI', off: 'NONE' }

function open({ file, isOfSeveral }: Order<'open'>): number {
  const { FS, DissectSession, getUploadDirectory, setPref, applyPreferences } = started()
  setPref(SEPARATION.module, SEPARATION.key, isOfSeveral ? SEPARATION.on : SEPARATION.off)
  applyPreferences()
  const path = `${getUploadDirectory()}/packets.pcapng`
  session?.delete()
  session = undefined
  FS.writeFile(path, file)
  const opened = new DissectSession(path)
  const { code, error, summary } = opened.load()
  if (code !== 0) throw new Error(error || `Wireshark does not read the packets (${code})`)
  session = opened
  return summary.packet_count
}

function rowsOf({ filter, skip, count }: Order<'rows'>): PacketRows {
  const { ok, error } = filter === '' ? { ok: true, error: '' } : started().checkFilter(filter)
  if (!ok) throw new FilterMistake(error)
  const { frames, matched } = opened().getFrames(filter, skip, count)
  const rows = taken(frames, ({ number, columns }) => ({ number, columns: taken(columns, String) }))
  return { rows, matched }
}

function detailsOf(number: number): PacketDetails {
  const { data_sources, tree, follow: followed } = opened().getFrame(number)
  const fields = taken(tree, fieldOf)
  return {
    sources: taken(data_sources, ({ name, data }) => ({ name, bytes: bytesOf(data) })),
    fields,
    streams: streamsOf(followed, fields),
  }
}

function fieldOf({
  label,
  filter,
  start,
  length,
  data_source_idx,
  type,
  fnum,
  tree,
}: WiregasmField): TreeField {
  return {
    label,
    filter,
    source: data_source_idx,
    start,
    length,
    packet: type === 'framenum' ? fnum : undefined,
    fields: taken(tree, fieldOf),
  }
}

/** For UDP the module returns a filter from memory that it has freed, so the filter is that of the field. */
function streamsOf(followed: WiregasmPacket['follow'], fields: readonly TreeField[]) {
  return taken(followed, (pair) => taken(pair, String)).map(([protocol = '', filter = '']) => {
    const own = fields
      .flatMap(({ fields: inner }) => inner)
      .find(({ filter: text }) => text.startsWith('udp.stream =='))
    return { protocol, filter: protocol === 'UDP' && own !== undefined ? own.filter : filter }
  })
}

function follow({ protocol, filter }: Order<'follow'>) {
  const { shost, sport, chost, cport, payloads } = opened().follow(protocol, filter)
  return {
    client: `${chost}:${cport}`,
    server: `${shost}:${sport}`,
    pieces: taken(payloads, ({ number, server, data }) => ({
      isFromServer: server === 1,
      packet: number,
      bytes: bytesOf(data),
    })),
  }
}

function started(): Wiregasm {
  if (wiregasm === undefined) throw new Error('the first order must be "start"')
  return wiregasm
}

function opened(): WiregasmSession {
  if (session === undefined) throw new Error('no packets are open')
  return session
}

function bytesOf(base64: string): Uint8Array {
  return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0))
}
