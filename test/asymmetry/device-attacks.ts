/** Attacks by a device of the fleet on the gateway, through its answers to probes, calls and downloads. */
import type { Socket } from 'node:net'
import { type Attack, type Attacks, askOverAndOver, getAsUser, type Scale } from './attack.ts'
import { answerWith, type Behaviour, behaveWell, endWith } from './attacking-device.ts'
import { gzipBomb, zstdBomb } from './bomb.ts'

const NESTED_LEVELS = 20_000
/** As many as fit into a head. */
const HEAD_BLANKS = 16_000
const LARGE_JSON_BYTES = { full: 63_000_000, small: 16_000_000 } as const

/** A read, an endless answer, a fleet request: each is passed on in another way. */
const WAYS_TO_ASK: readonly string[] = [
  '/devices/evil/api/v1/system/version',
  '/devices/evil/api/v1/system/events',
  '/stream/list',
]

export const deviceAttacks: Attacks = {
  'a-device-with-deep-json': device({
    behave: () => {
      const nested = '['.repeat(NESTED_LEVELS) + ']'.repeat(NESTED_LEVELS)
      const list = `{"Path":"/capture/","StreamList":true,"List":[{"StreamName":${nested}}]}`
      return ({ socket }) => answerWith(socket, list)
    },
    paths: ['/stream/list', '/devices/evil/stream/list', '/api/v1/system/status?Device=evil'],
  }),
  'a-device-with-large-json': device({
    behave: (scale) => {
      const entry = '{"StreamName":"x","a":[[],{}]},'
      const entries = entry.repeat(Math.floor(LARGE_JSON_BYTES[scale] / entry.length))
      const list = Buffer.from(`{"version":"1","List":[${entries}{}]}`)
      return ({ socket }) => answerWith(socket, list)
    },
    paths: ['/stream/list', '/api/v1/system/version?Device=evil'],
    connections: 1,
  }),
  'a-device-with-endless-json': device({
    behave: () => (question) => pourForEver(question.socket, head('application/json'), '[[[],[],"x"],'),
    paths: ['/stream/list', '/devices/evil/stream/list'],
  }),
  'a-device-with-endless-heads-of-no-answer': device({
    behave: () => downloadsAndCalls((socket) => pourForEver(socket, '', 'HTTP/1.1 103 Early Hints\r\n\r\n')),
    paths: WAYS_TO_ASK,
  }),
  'a-device-that-switches-protocols': device({
    behave: () =>
      downloadsAndCalls((socket) => {
        const change = 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n'
        pourForEver(socket, change, 'x'.repeat(1_000))
      }),
    paths: WAYS_TO_ASK,
  }),
  'a-device-with-blanks-in-its-head': device({
    behave: () =>
      downloadsAndCalls((socket) =>
        endWith(socket, Buffer.from(`HTTP/1.1 200 OK\r\nA:${' '.repeat(HEAD_BLANKS)}\x01\r\n\r\n`)),
      ),
    paths: WAYS_TO_ASK,
  }),
  'a-device-with-an-endless-head': device({
    behave: () =>
      downloadsAndCalls((socket) => pourForEver(socket, 'HTTP/1.1 200 OK\r\n', 'X: yyyyyyyy\r\n')),
    paths: WAYS_TO_ASK,
  }),
  'a-device-with-a-slow-head': device({
    behave: () =>
      downloadsAndCalls((socket) => {
        socket.write('HTTP/1.1 200 OK\r\nX: ')
        const drip = setInterval(() => socket.write('y'), 500)
        socket.once('close', () => clearInterval(drip))
      }),
    paths: WAYS_TO_ASK,
    connections: 64,
  }),
  'a-device-with-gzip-bombs': device({
    behave: (scale) => bombing(gzipBomb(scale)),
    paths: ['/devices/evil/api/v1/pcap/timerange?TSBegin=1&TSEnd=2&TSUnit=sec&Compression=fast'],
  }),
  'a-device-with-zstd-bombs': device({
    behave: (scale) => bombing(zstdBomb(scale)),
    paths: ['/devices/evil/api/v1/pcap/timerange?TSBegin=1&TSEnd=2&TSUnit=sec&Compression=zstd'],
  }),
  // The data that a merge fetches from this device is compressed, according to its settings.
  'a-device-with-zstd-bombs-in-merges': device({
    behave: (scale) => bombing(zstdBomb(scale)),
    paths: ['/api/v1/pcap/timerange?Device=evil,d0&TSBegin=1&TSEnd=2&TSUnit=sec'],
  }),
}

interface DeviceAttack {
  /** The device's behaviour in an attack of this scale. */
  readonly behave: (scale: Scale) => Behaviour
  /** The requests that the device's accomplice sends to the gateway meanwhile, in turn. */
  readonly paths: readonly string[]
  readonly connections?: number
}

function device({ behave, paths, connections = 4 }: DeviceAttack): Attack {
  let behaviour: Behaviour = behaveWell
  return {
    targets: ['gateway'],
    prepare: (scale) => {
      behaviour = behave(scale)
    },
    run: async (scene) => {
      scene.device.behave(behaviour)
      await askOverAndOver(scene, connections, (n) =>
        getAsUser(scene.stand, paths[n % paths.length] ?? '/stream/list'),
      )
    },
  }
}

/** Everything except the probe's first request, so that the device counts as working. */
function downloadsAndCalls(answer: (socket: Socket) => void): Behaviour {
  let versions = 0
  return (question) => {
    versions += question.target.includes('version') ? 1 : 0
    if (question.target.includes('version') && versions % 2 === 1) behaveWell(question)
    else answer(question.socket)
  }
}

function bombing(bomb: Buffer): Behaviour {
  return (question) => {
    if (!question.target.includes('/pcap/')) return behaveWell(question)
    question.socket.write(head('application/vnd.tcpdump.pcap'))
    const size = Buffer.from(`${bomb.length.toString(16)}\r\n`)
    endWith(question.socket, Buffer.concat([size, bomb, Buffer.from('\r\n0\r\n\r\n')]))
  }
}

function head(type: string): string {
  return `HTTP/1.1 200 OK\r\nContent-Type: ${type}\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n`
}

const POUR_BYTES = 65_536

/**
 * The beginning, then the same piece again and again as fast as it is read. A chunked body becomes one endless chunk.
 */
function pourForEver(socket: Socket, beginning: string, again: string): void {
  const isChunked = beginning.includes('chunked')
  socket.write(isChunked ? `${beginning}7fffffff\r\n{"List":` : beginning)
  const piece = Buffer.from(again.repeat(Math.ceil(POUR_BYTES / again.length)))
  const pour = (): void => {
    while (!socket.destroyed && socket.write(piece));
  }
  socket.on('drain', pour)
  pour()
}
