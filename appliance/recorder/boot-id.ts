import { readFile } from 'node:fs/promises'

/** Another one after each start of the machine; "" when the kernel does not say. */
export async function readBootId(): Promise<string> {
  const text = await readFile('/proc/sys/kernel/random/boot_id', 'utf8').catch(() => '')
  return text.trim()
}
