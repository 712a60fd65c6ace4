/** The audit of a program, as the gateway's configuration has it. */
import { join } from 'node:path'
import { AuditLog, type AuditProgram } from './audit/audit-log.ts'
import type { GatewayConfig } from './gateway-config.ts'

export function auditFolder({ audit, home }: GatewayConfig): string {
  return audit.folder ?? join(home, 'audit')
}

/** `owner` ends it. Fails with bad-config. */
export async function openAudit(
  config: GatewayConfig,
  program: AuditProgram,
  owner: AsyncDisposableStack,
): Promise<AuditLog> {
  return owner.use(await AuditLog.open({ ...config.audit, folder: auditFolder(config) }, program))
}
