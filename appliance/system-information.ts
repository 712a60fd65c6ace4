/** /api/v1/system/time_current and version (API sections 4.3 and 2.2). */
import { readFileSync, statSync } from 'node:fs'
import type { ApplianceContext, ApplianceParts } from './appliance-parts.ts'
import { nowNs } from './appliance-parts.ts'

/** Text of 19 digits, because scripts do arithmetic on it; JSON for those that ask for it. */
export async function answerTime(_parts: ApplianceParts, ctx: ApplianceContext): Promise<void> {
  const time = String(nowNs())
  ctx.set('Cache-Control', 'no-store')
  if (ctx.accepts('text/plain', 'application/json') === 'application/json') {
    ctx.body = { time_current: time }
    return
  }
  ctx.type = 'text/plain'
  ctx.body = `${time}\n`
}

const PACKAGE_FILE = new URL('../package.json', import.meta.url)

export async function answerVersion(parts: ApplianceParts, ctx: ApplianceContext): Promise<void> {
  ctx.body = { version: productVersion(), device: parts.config.model, build: buildTime() }
}

function productVersion(): string {
  const { version } = JSON.parse(readFileSync(PACKAGE_FILE, 'utf8')) as { version: string }
  return version
}

/** When this version was put on the machine: "2026-11-20 09:30:00". */
function buildTime(): string {
  return statSync(PACKAGE_FILE).mtime.toISOString().slice(0, 19).replace('T', ' ')
}
