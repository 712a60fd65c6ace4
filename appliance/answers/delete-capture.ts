/** /pcap/del. */

import { CapfleetError } from '../../src/shared/base/error.ts'
import { DELETE_PARAMETERS } from '../../src/shared/contract/device-parameters.ts'
import { takeParameters } from '../../src/shared/contract/request-parameters.ts'
import { refuseCrossSite } from '../../src/shared/http/cross-site.ts'
import { ctime } from '../../src/shared/query/time/ctime.ts'
import type { ApplianceContext, ApplianceParts } from '../appliance-parts.ts'

/** Requires the full name: a base name would mean whichever is the newest at that moment. */
export async function deleteCapture(ctx: ApplianceContext, parts: ApplianceParts): Promise<void> {
  refuseCrossSite(ctx.req)
  const { captureName: name, isForced } = takeParameters(ctx, DELETE_PARAMETERS)
  const { state } = await parts.catalogue.findExact(name)
  if (state === 'active') {
    throw new CapfleetError('capture-active', `${name} is being recorded; stop it first`, {
      param: 'StreamName',
    })
  }
  const readers = [...parts.slots.readers].filter((reader) => reader.captures.includes(name))
  if (readers.length > 0 && !isForced) throw inUse(name, readers.length)
  const { bytesFreed } = await parts.recorder.deleteCapture(name)
  parts.log.info('capture.deleted', { name, user: ctx.state.caller?.name, bytesFreed: String(bytesFreed) })
  ctx.body = {
    Status: true,
    Str: `[${ctime(new Date(), parts.config.timeZone)}] deleted capture [${name}]`,
    StreamName: name,
    BytesFreed: String(bytesFreed),
  }
}

function inUse(name: string, readers: number): CapfleetError {
  return new CapfleetError(
    'capture-in-use',
    `${name} is being downloaded (${readers} times); wait, or add Force=1 to abort the downloads`,
    { param: 'StreamName' },
  )
}
