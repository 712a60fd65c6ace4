/** Opens the audit of a program, according to the gateway's configuration. */
import { join } from 'node:path'
import { AuditLog, type AuditProgram } from './audit/audit-log.ts'
import type { GatewayConfig } from './gateway-config.ts'

export function auditFolder({ audit, home }: GatewayConfig): string {
  return audit.folder ?? join(home, 'audit')
}

/** Ends when `owner` is disposed. Fails with bad-config. */
export async function openAudit(
  config: GatewayConfig,
  program: AuditProgram,
  owner: AsyncDisposableStack,
): Promise<AuditLog> {
  return owner.use(await AuditLog.open({ ...config.audit, folder: auditFolder(config) }, program))
}
