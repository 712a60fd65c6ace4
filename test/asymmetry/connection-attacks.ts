/** Attacks by anyone who can connect: with connections, heads, bodies and wrong passwords. */
import {
  type AttackScene,
  type Attacks,
  askOverAndOver,
  BOTH,
  get,
  getAsUser,
  holdConnections,
  isOver,
  pause,
} from './attack.ts'
import { basic, controlPath, HONEST_NAME } from './stand.ts'

const PIPELINED_AT_ONCE = 1_000
/** 200,000 requests on a connection, or 20,000. */
const PIPELINED_BATCHES = { full: 200, small: 20 } as const
/** The largest head that a server accepts, less some space for the rest of it. */
const LARGE_HEAD_BYTES = 60_000
const TOO_LARGE_HEAD_BYTES = 70_000
/** Node.js accepts fewer than a thousand. */
const HEADER_LINES = 950
const TRICKLE_MS = 500
/** Used to cost seconds of processor time: blanks between two letters of a value. */
const TRACED_BLANKS = [
  'traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01',
  `tracestate: a=b${' '.repeat(LARGE_HEAD_BYTES)}c`,
]

export const connectionAttacks: Attacks = {
  'pipelining-then-close': {
    targets: BOTH,
    run: (scene) => pipeline(scene, { asUser: false, stays: false }),
  },
  'pipelining-of-a-user-then-close': {
    targets: BOTH,
    run: (scene) => pipeline(scene, { asUser: true, stays: false }),
  },
  'pipelining-that-stays': { targets: BOTH, run: (scene) => pipeline(scene, { asUser: true, stays: true }) },

  'many-header-lines': {
    targets: BOTH,
    run: (scene) => {
      const lines = Array.from({ length: HEADER_LINES }, (_, n) => `X-${n}: ${n}`)
      return askOverAndOver(scene, 4, () => get('/livez', lines))
    },
  },
  'large-heads': {
    targets: BOTH,
    run: (scene) => askOverAndOver(scene, 4, () => get('/livez', [`X: ${'x'.repeat(LARGE_HEAD_BYTES)}`])),
  },
  'too-large-heads': {
    targets: BOTH,
    run: (scene) => askOverAndOver(scene, 4, () => get('/livez', [`X: ${'x'.repeat(TOO_LARGE_HEAD_BYTES)}`])),
  },
  'blanks-in-tracestate': {
    targets: BOTH,
    run: (scene) => askOverAndOver(scene, 4, () => get('/livez', TRACED_BLANKS)),
  },
  'long-unknown-paths': {
    targets: BOTH,
    run: (scene) => askOverAndOver(scene, 4, () => get(`/${'x'.repeat(LARGE_HEAD_BYTES)}`)),
  },

  'slow-heads': { targets: BOTH, run: (scene) => trickle(scene, 'GET /livez HTTP/1.1\r\nHost: x\r\nX: ') },
  'slow-bodies': {
    targets: BOTH,
    run: (scene) => trickle(scene, get(controlPath(scene.stand), ['Content-Length: 1000000'])),
  },

  'idle-handshakes': {
    targets: BOTH,
    stand: 'tls',
    run: async (scene) => {
      const lane = async (): Promise<void> => {
        const connection = await scene.wire.connect({ isRaw: true })
        // The first bytes of a record with a handshake of 512 bytes, and nothing more.
        connection?.send(Buffer.from('1603010200010001fc0303', 'hex'))
        await connection?.closed
      }
      await Promise.all(Array.from({ length: hundreds(scene) }, lane))
    },
  },
  handshakes: {
    targets: BOTH,
    stand: 'tls',
    run: async (scene) => {
      const lane = async (): Promise<void> => {
        while (!isOver(scene)) {
          const connection = await scene.wire.connect()
          connection?.close()
          if (connection === undefined) await pause(scene, 20)
        }
      }
      await Promise.all(Array.from({ length: 8 }, lane))
    },
  },

  'idle-connections': {
    targets: BOTH,
    run: (scene) => holdConnections(scene, 3 * hundreds(scene), () => get('/livez')),
  },
  'connections-beyond-the-descriptors': {
    targets: BOTH,
    stand: 'few-descriptors',
    run: (scene) => holdConnections(scene, 400, () => ''),
  },
  'connections-in-quick-succession': {
    targets: BOTH,
    run: async (scene) => {
      const lane = async (): Promise<void> => {
        while (!isOver(scene)) {
          const connection = await scene.wire.connect()
          connection?.close()
          if (connection === undefined) await pause(scene, 5)
        }
      }
      await Promise.all(Array.from({ length: 8 }, lane))
    },
  },

  // Each costs us a hash that is deliberately slow.
  'wrong-logins': { targets: BOTH, run: (scene) => guess(scene, (n) => `guess-${n}`) },
  // The user whose password is guessed must not be locked out.
  'wrong-logins-of-another-user': { targets: BOTH, run: (scene) => guess(scene, () => HONEST_NAME) },
}

function hundreds({ scale }: AttackScene): number {
  return scale === 'full' ? 400 : 100
}

/** Sends requests without waiting for answers, over one connection after another. */
async function pipeline(
  scene: AttackScene,
  { asUser, stays }: { readonly asUser: boolean; readonly stays: boolean },
): Promise<void> {
  const { stand, scale } = scene
  const path = controlPath(stand)
  const request = asUser ? getAsUser(stand, path) : get(path)
  const batch = Buffer.from(request.repeat(PIPELINED_AT_ONCE))
  while (!isOver(scene)) {
    const connection = await scene.wire.connect()
    connection?.stopReading()
    let left: number = PIPELINED_BATCHES[scale]
    while (left > 0 && !isOver(scene) && (await connection?.sendAll(batch))) left -= 1
    if (stays && left === 0) await connection?.closed
    connection?.close()
    await pause(scene, 20)
  }
}

/** Sockets that begin a request and send another byte now and then. */
async function trickle(scene: AttackScene, beginning: string): Promise<void> {
  const lane = async (): Promise<void> => {
    const connection = await scene.wire.connect()
    connection?.send(beginning)
    while (!isOver(scene) && (await connection?.sendAll('x'))) await pause(scene, TRICKLE_MS)
  }
  await Promise.all(Array.from({ length: hundreds(scene) }, lane))
}

function guess(scene: AttackScene, nameOf: (n: number) => string): Promise<void> {
  const { stand, scale } = scene
  return askOverAndOver(scene, scale === 'full' ? 300 : 100, (n) =>
    get('/stream/list', [`Authorization: ${basic(nameOf(n), `wrong ${n} of ${stand.attackedPid}`)}`]),
  )
}
