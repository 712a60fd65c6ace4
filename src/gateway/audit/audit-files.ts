/**
 * File names in the audit folder. Each process has its own chain of lines in numbered files:
 * nyc1.gateway.00000001.jsonl, nyc1.gateway.00000002.jsonl ... Processes on other machines may share the folder.
 */
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'

export interface AuditFile {
  readonly chain: string
  readonly number: number
  readonly path: string
}

const FILE_NAME = /^(?<chain>.+)\.(?<number>\d{8,15})\.jsonl$/

export function auditFile(folder: string, chain: string, number: number): AuditFile {
  return { chain, number, path: join(folder, `${chain}.${String(number).padStart(8, '0')}.jsonl`) }
}

/** The lock held by the process that writes the chain. */
export function lockPath(folder: string, chain: string): string {
  return join(folder, `${chain}.lock`)
}

/** The files of each chain, oldest first. Fails with the errors of readdir. */
export async function listChains(folder: string): Promise<ReadonlyMap<string, readonly AuditFile[]>> {
  const files = (await readdir(folder)).flatMap((name): AuditFile[] => {
    const { chain, number } = FILE_NAME.exec(name)?.groups ?? {}
    return chain === undefined ? [] : [{ chain, number: Number(number), path: join(folder, name) }]
  })
  files.sort((a, b) => a.number - b.number)
  return new Map([...Map.groupBy(files, ({ chain }) => chain)].sort(([a], [b]) => (a < b ? -1 : 1)))
}
