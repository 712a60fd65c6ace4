/** /pcap/del (API section 4.2, api-decisions section 2). */
import { CapfleetError } from '../src/base/error.ts'
import { QueryParameters } from '../src/query/query-parameters.ts'
import type { ApplianceContext, ApplianceParts } from './appliance-parts.ts'

/** Needs the full name: a base name would mean whatever is newest at that moment. */
export async function deleteCapture(parts: ApplianceParts, ctx: ApplianceContext): Promise<void> {
  refuseCrossSite(ctx)
  const parameters = new QueryParameters(ctx.querystring)
  const name = parameters.require('StreamName')
  const isForced = parameters.takeSwitch('Force') ?? false
  parameters.finish()
  const { state } = await parts.catalogue.findExact(name)
  if (state === 'active') {
    throw new CapfleetError('capture-active', `${name} is being recorded; stop it first`, {
      param: 'StreamName',
    })
  }
  const readers = [...parts.slots.readers].filter((reader) => reader.captures.includes(name))
  if (readers.length > 0 && !isForced) throw inUse(name, readers.length)
  const { bytesFreed } = await parts.recorder.deleteCapture(name)
  parts.log.info('capture.deleted', { name, user: ctx.state.user, bytesFreed: String(bytesFreed) })
  ctx.body = {
    Status: true,
    Str: `[${ctime(new Date(), parts.config.timeZone)}] deleted capture [${name}]`,
    StreamName: name,
    BytesFreed: String(bytesFreed),
  }
}

/** A link or image on a foreign page must not delete (api-decisions section 1). */
function refuseCrossSite(ctx: ApplianceContext): void {
  if (ctx.get('Sec-Fetch-Site') === 'cross-site') {
    throw new CapfleetError('cross-site', 'a page of another site asked for this; use the API directly')
  }
}

function inUse(name: string, readers: number): CapfleetError {
  return new CapfleetError(
    'capture-in-use',
    `${name} is being downloaded (${readers} times); wait, or add Force=1 to cut the downloads`,
    { param: 'StreamName' },
  )
}

/** As C's ctime() writes it: "Fri Nov 20 09:30:00 2026". */
function ctime(date: Date, timeZone: string): string {
  const parts: Record<string, string> = {}
  const format = new Intl.DateTimeFormat('en-US', {
    timeZone,
    weekday: 'short',
    month: 'short',
    day: 'numeric',
    year: 'numeric',
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
    hourCycle: 'h23',
  })
  for (const { type, value } of format.formatToParts(date)) parts[type] = value
  const { weekday, month, day = '', hour, minute, second, year } = parts
  return `${weekday} ${month} ${day.padStart(2)} ${hour}:${minute}:${second} ${year}`
}
