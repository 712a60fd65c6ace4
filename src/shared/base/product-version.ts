import { readFileSync, statSync } from 'node:fs'

const PACKAGE_FILE = new URL('../../../package.json', import.meta.url)

/** The version of capfleet; read once, because a running program does not change. */
export function productVersion(): string {
  return version
}

const { version } = JSON.parse(readFileSync(PACKAGE_FILE, 'utf8')) as { readonly version: string }

/** When this version was installed on the machine: "2026-11-20 09:30:00". */
export function buildTime(): string {
  return statSync(PACKAGE_FILE).mtime.toISOString().slice(0, 19).replace('T', ' ')
}
