import { readFile } from 'node:fs/promises'

/** Identifies the current boot of the machine; changes with each boot. "" if the kernel does not provide it. */
export async function readBootId(): Promise<string> {
  const text = await readFile('/proc/sys/kernel/random/boot_id', 'utf8').catch(() => '')
  return text.trim()
}
