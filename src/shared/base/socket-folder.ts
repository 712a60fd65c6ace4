import { closeSync, constants, openSync } from 'node:fs'
import { join } from 'node:path'

/** A socket in a folder, with an address that is short enough for the kernel. */
export interface SocketFolder extends Disposable {
  /** Valid in this process until disposed. */
  readonly socketPath: string
}

/** sockaddr_un holds 108 bytes including the terminating zero. */
const ADDRESS_BYTES_MAX = 107

/**
 * The path of a folder may be longer than the address of a Unix socket can be. The address then goes through the
 * folder's descriptor, which is short whatever the folder's name. Fails with the system's error if the folder does not
 * exist.
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
