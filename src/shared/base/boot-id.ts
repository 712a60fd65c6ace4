import { readFile } from 'node:fs/promises'

/** Identifies the present boot of the machine: another one after each start. "" when the kernel does not say. */
export async function readBootId(): Promise<string> {
  const text = await readFile('/proc/sys/kernel/random/boot_id', 'utf8').catch(() => '')
  return text.trim()
}
