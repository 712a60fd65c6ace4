/** /sysmaster/capture_start and capture_stop (API section 4.1, api-decisions section 2). */
import { refuseCrossSite } from '../../src/http/cross-site.ts'
import { ctime } from '../../src/query/ctime.ts'
import { QueryParameters } from '../../src/query/query-parameters.ts'
import type { ApplianceContext, ApplianceParts } from '../appliance-parts.ts'
import { finishChange } from '../request/finish-parameters.ts'
import { checkBaseName } from '../store/capture-names.ts'
import { toExactJson } from '../system-status/exact-json.ts'
import { askRecorder } from './ask-recorder.ts'

/**
 * Answers before a packet has come, as with a cable that is not plugged in. A device without
 * capture ports says so in `Warning`: its capture stays empty.
 */
export async function startCapture(parts: ApplianceParts, ctx: ApplianceContext): Promise<void> {
  refuseCrossSite(ctx.req)
  const parameters = new QueryParameters(ctx.querystring)
  const baseName = parameters.take('StreamName') ?? parts.config.capture.defaultName
  finishChange(ctx, parameters)
  checkBaseName(baseName)
  const report = await askRecorder(parts.recorder, (recorder, limit) =>
    recorder.startCapture(baseName, limit),
  )
  await parts.sensors.captureChanged()
  ctx.set('Cache-Control', 'no-store')
  parts.log.info('capture.started', { name: report.name, user: ctx.state.user })
  ctx.body = {
    Status: true,
    Str: `[${ctime(new Date(), parts.config.timeZone)}] successfully started capture [${baseName}]`,
    StreamName: report.name,
    StartTS: String(report.startNs),
    State: report.state,
    ...(report.ports.length === 0 ? { Warning: NO_PORT } : {}),
  }
}

const NO_PORT = 'no capture port is configured on this device: the capture stays empty'

/** `Until=next` also stops what a schedule has started, until its next start. */
export async function stopCapture(parts: ApplianceParts, ctx: ApplianceContext): Promise<void> {
  refuseCrossSite(ctx.req)
  const parameters = new QueryParameters(ctx.querystring)
  const stopsScheduled = parameters.takeChoice('Until', ['next']) === 'next'
  finishChange(ctx, parameters)
  const stopped = await askRecorder(parts.recorder, (recorder, limit) =>
    recorder.stopCapture(stopsScheduled, limit),
  )
  await parts.sensors.captureChanged()
  ctx.set('Cache-Control', 'no-store')
  parts.log.info('capture.stopped', { name: stopped.name, user: ctx.state.user })
  ctx.type = 'json'
  ctx.body = toExactJson({
    Status: true,
    Str: `[${ctime(new Date(), parts.config.timeZone)}] successfully stopped capture [${stopped.baseName}]`,
    StreamName: stopped.name,
    State: 'idle',
    StopTS: String(stopped.stopNs),
    CapturePacket: stopped.packets,
    CaptureByte: stopped.bytes,
    CaptureDrop: stopped.drops,
  })
}
