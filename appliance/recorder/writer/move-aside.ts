import { rename } from 'node:fs/promises'

/**
 * Renames what lies where a file or folder of the store belongs, so that the store works again; nothing is deleted.
 * Fails with the system's error.
 */
export async function moveAside(path: string): Promise<void> {
  await rename(path, `${path}.moved-${Date.now()}`)
}

/** Gives the file this name. A folder with the name is moved aside. Fails with the system's error. */
export async function replaceFile(file: string, path: string): Promise<void> {
  try {
    await rename(file, path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EISDIR') throw error
    await moveAside(path)
    await rename(file, path)
  }
}
