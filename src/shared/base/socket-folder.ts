import { closeSync, constants, openSync } from 'node:fs'
import { join } from 'node:path'

/** A socket in a folder, by an address that is short enough for the kernel. */
export interface SocketFolder extends Disposable {
  /** Valid in this process until dispose. */
  readonly socketPath: string
}

/** sockaddr_un holds 108 bytes with the final zero. */
const ADDRESS_BYTES_MAX = 107

/**
 * A folder may lie deeper than the address of a Unix socket is long. The address goes through the folder's
 * descriptor then, which is short whatever the folder is called. Fails with the system's error when the folder does
 * not exist.
 */
export function openSocketFolder(folder: string, name: string): SocketFolder {
  const descriptor = openSync(folder, constants.O_RDONLY | constants.O_DIRECTORY)
  const path = join(folder, name)
  let isOpen = true
  return {
    socketPath: Buffer.byteLength(path) <= ADDRESS_BYTES_MAX ? path : `/proc/self/fd/${descriptor}/${name}`,
    [Symbol.dispose]() {
      if (isOpen) closeSync(descriptor)
      isOpen = false
    },
  }
}
