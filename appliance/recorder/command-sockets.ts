/**
 * The sockets on which the recorder takes commands. The mode of each decides who may connect, and so what a client may
 * command. This is the boundary between the recorder and everything else on the machine:
 *
 * - The group of the store (recorder.sock) includes the appliance, which is reachable over the network. It starts, stops
 *   and deletes captures and imports bytes that it sends itself, because its API does. If the appliance is compromised,
 *   the attacker can delete every capture of the store, and add others.
 * - The owner (recorder-owner.sock: the user of the recorder, and root) may also name files to import. The recorder opens
 *   them with its own rights, so only users who have these rights anyway may name them. Any other client could use it to
 *   read capture files that it has no access to.
 */
import { once } from 'node:events'
import { chmodSync, rmSync } from 'node:fs'
import { createServer, type Server, type Socket } from 'node:net'
import { isFullDisk } from '../../src/shared/base/full-disk.ts'
import type { Log } from '../../src/shared/base/log.ts'
import { openSocketFolder } from '../../src/shared/base/socket-folder.ts'
import { OWNER_SOCKET_NAME, SOCKET_NAME } from '../store/store-paths.ts'
import type { StoreReserve } from './writer/store-reserve.ts'

/** Who may have opened a connection. */
export type CommandRights = 'group' | 'owner'

export interface CommandSocketsOptions {
  readonly storePath: string
  /** Releases space if the disk is too full for a socket. */
  readonly reserve: StoreReserve
  readonly log: Log
  readonly onConnection: (socket: Socket, rights: CommandRights) => void
}

/** In the order of opening: a client that finds a recorder at the group's socket finds the owner's too. */
const SOCKETS = [
  { name: OWNER_SOCKET_NAME, mode: 0o600, rights: 'owner' },
  { name: SOCKET_NAME, mode: 0o660, rights: 'group' },
] as const
const RETRY_MS = 1_000

/**
 * Accepts connections until disposed; their owner ends the running ones. If the disk is too full for a socket, this is
 * retried until there is room: the capture must run in the meantime, and retention makes the room.
 */
export async function openCommandSockets({
  storePath,
  reserve,
  log,
  onConnection,
}: CommandSocketsOptions): Promise<AsyncDisposable> {
  await using parts = new AsyncDisposableStack()
  for (const { name, mode, rights } of SOCKETS) {
    const { socketPath } = parts.use(openSocketFolder(storePath, name))
    const server = createServer((socket) => onConnection(socket, rights))
    parts.defer(() => void server.close())
    const bind = (): Promise<void> => reserve.use(() => listen(server, socketPath, mode))
    try {
      await bind()
    } catch (error) {
      if (!isFullDisk(error)) throw error
      log.error('recorder.socket-failed', { err: error })
      const retry = setInterval(() => {
        bind().then(
          () => clearInterval(retry),
          (err: unknown) => log.debug('recorder.socket-failed', { err }),
        )
      }, RETRY_MS)
      parts.defer(() => clearInterval(retry))
    }
  }
  return parts.move()
}

async function listen(server: Server, socketPath: string, mode: number): Promise<void> {
  // The recorder that holds the lock is the only one: a socket at this path is left over from a dead one.
  rmSync(socketPath, { force: true })
  server.listen(socketPath)
  await once(server, 'listening')
  chmodSync(socketPath, mode)
}
