import { open } from 'node:fs/promises'

/** Changes bytes at these places of a file; a second call with the same ones puts them right again. */
export async function flipBytes(path: string, ...places: readonly number[]): Promise<void> {
  await using file = await open(path, 'r+')
  for (const at of places) {
    const byte = Buffer.alloc(1)
    await file.read(byte, 0, 1, at)
    byte.writeUInt8(byte.readUInt8(0) ^ 0x5a)
    await file.write(byte, 0, 1, at)
  }
}
