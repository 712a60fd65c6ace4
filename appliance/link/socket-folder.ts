import { closeSync, constants, openSync } from 'node:fs'
import { SOCKET_NAME } from '../store/store-paths.ts'

/** The recorder's socket by an address that is short enough for the kernel. */
export interface SocketFolder extends Disposable {
  /** Valid in this process until dispose. */
  readonly socketPath: string
}

/**
 * A Unix socket's address has 107 bytes; a store may lie deeper. The address goes through the
 * folder's descriptor instead, which is short whatever the folder is called.
 * Fails with the system's error when the folder does not exist.
 */
export function openSocketFolder(storeRoot: string): SocketFolder {
  const descriptor = openSync(storeRoot, constants.O_RDONLY | constants.O_DIRECTORY)
  let isOpen = true
  return {
    socketPath: `/proc/self/fd/${descriptor}/${SOCKET_NAME}`,
    [Symbol.dispose]() {
      if (isOpen) closeSync(descriptor)
      isOpen = false
    },
  }
}
