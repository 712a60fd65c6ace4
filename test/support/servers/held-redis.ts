import { once } from 'node:events'
import { type AddressInfo, createConnection, createServer, type Socket } from 'node:net'
import { eventually } from '../eventually.ts'

/**
 * A relay in front of a Redis server that can hold back commands, or the answers to them. Connections that wait for messages
 * (BLMPOP) are never held, so that a message arrives before the answer to an earlier command.
 */
export class HeldRedis implements AsyncDisposable {
  readonly #server = createServer((client) => this.#relay(client))
  /** The socket of the server. */
  readonly #path: string
  readonly #sockets = new Set<Socket>()
  /** Connections that wait for messages. */
  #inboxes = 0
  /** What is held back; undefined: nothing. */
  #held: { readonly what: 'commands' | 'answers'; readonly sends: (() => void)[] } | undefined

  private constructor(path: string) {
    this.#path = path
  }

  /** `path`: that of a TempRedis. */
  static async start(path: string): Promise<HeldRedis> {
    const held = new HeldRedis(path)
    held.#server.listen(0, '127.0.0.1')
    await once(held.#server, 'listening')
    return held
  }

  get url(): string {
    return `redis://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  /** Begins when a connection waits for messages. */
  async hold(what: 'commands' | 'answers'): Promise<void> {
    await eventually(() => this.#inboxes > 0, { message: 'a connection waits for messages' })
    this.#held = { what, sends: [] }
  }

  /** Sends what was held back, in its order. */
  release(): void {
    const sends = this.#held?.sends ?? []
    this.#held = undefined
    for (const send of sends) send()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy()
    this.#server.close()
    await once(this.#server, 'close')
  }

  #relay(client: Socket): void {
    const redis = createConnection(this.#path)
    let isInbox = false
    const pass = (what: 'commands' | 'answers', send: () => void): void => {
      if (this.#held?.what === what && !isInbox) this.#held.sends.push(send)
      else send()
    }
    client.on('data', (data) => {
      if (!isInbox && data.includes('\r\nblmpop\r\n')) {
        isInbox = true
        this.#inboxes += 1
        client.on('close', () => {
          this.#inboxes -= 1
        })
      }
      pass('commands', () => redis.write(data))
    })
    redis.on('data', (data) => pass('answers', () => client.write(data)))
    for (const [socket, other] of [
      [client, redis],
      [redis, client],
    ] as const) {
      this.#sockets.add(socket)
      socket.on('error', () => other.destroy())
      socket.on('close', () => {
        this.#sockets.delete(socket)
        other.destroy()
      })
    }
  }
}
