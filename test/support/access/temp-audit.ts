/** Audit logs in a temporary folder. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { AuditEvent } from '../../../src/gateway/audit/audit-events.ts'
import { listChains } from '../../../src/gateway/audit/audit-files.ts'
import { type Audit, AuditLog, type AuditSettings } from '../../../src/gateway/audit/audit-log.ts'
import { createLog } from '../../../src/shared/base/log.ts'
import { Metrics } from '../../../src/shared/base/metrics.ts'
import { type TempFolder, tempFolder } from '../temp-folder.ts'

export interface TempAudit extends TempFolder {
  readonly metrics: Metrics
  /** Opens an audit in the folder; the caller closes it. */
  open(settings?: Partial<AuditSettings>, now?: () => Date): Promise<AuditLog>
  /** The lines of all its files, in order of file name. */
  entries(): Promise<readonly AuditEntry[]>
}

export type AuditEntry = Readonly<Record<string, unknown>> & { readonly event: string; readonly seq: number }

export const TEMP_AUDIT_SETTINGS = {
  name: 'nyc1',
  required: true,
  sync: 'second',
  fileBytes: 1 << 28,
  keepDays: 400,
  keepBytes: 1 << 30,
  refusalBytesPerDay: 1 << 26,
  reserveBytes: 0,
} as const satisfies Omit<AuditSettings, 'folder'>

export async function tempAudit(folder?: string): Promise<TempAudit> {
  const own = await tempFolder()
  const path = folder ?? join(own.path, 'audit')
  const metrics = new Metrics()
  return {
    path,
    metrics,
    open: (settings = {}, now = () => new Date()) =>
      AuditLog.open(
        { ...TEMP_AUDIT_SETTINGS, folder: path, ...settings },
        { kind: 'gateway', log: createLog('test', 'silent'), metrics: new Metrics(), now },
      ),
    entries: () => auditEntries(path),
    [Symbol.asyncDispose]: () => own[Symbol.asyncDispose](),
  }
}

/** The lines of all audit logs in a folder. */
export async function auditEntries(folder: string): Promise<readonly AuditEntry[]> {
  const files = [...(await listChains(folder)).values()].flat()
  const texts = await Promise.all(files.map(({ path }) => readFile(path, 'utf8')))
  return texts.flatMap((text) =>
    text
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line) as AuditEntry),
  )
}

/** An audit for tests that need no audit log. */
export const UNAUDITED: Audit = { record: async () => undefined }

export const downloadBy = (user: string, details: Record<string, unknown> = {}): AuditEvent => ({
  event: 'download.begin',
  user,
  address: '192.0.2.7',
  credential: 'password',
  requestId: `request of ${user}`,
  details,
})
