/** /sysmaster/capture_start and capture_stop. */
import { START_PARAMETERS, STOP_PARAMETERS } from '../../src/shared/contract/device-parameters.ts'
import { takeParameters } from '../../src/shared/contract/request-parameters.ts'
import { refuseCrossSite } from '../../src/shared/http/cross-site.ts'
import { ctime } from '../../src/shared/query/time/ctime.ts'
import type { ApplianceContext, ApplianceParts } from '../appliance-parts.ts'
import { toExactJson } from '../system-status/exact-json.ts'
import { askRecorder } from './ask-recorder.ts'

/**
 * Answers before a packet has arrived, as when no cable is plugged in. A device without capture ports says so in
 * `Warning`: its capture stays empty.
 */
export async function startCapture(ctx: ApplianceContext, parts: ApplianceParts): Promise<void> {
  refuseCrossSite(ctx.req)
  const { baseName = parts.config.capture.defaultName } = takeParameters(ctx, START_PARAMETERS)
  const report = await askRecorder(parts.recorder, (recorder, limit) =>
    recorder.startCapture(baseName, limit),
  )
  await parts.sensors.captureChanged()
  ctx.set('Cache-Control', 'no-store')
  parts.log.info('capture.started', { name: report.name, user: ctx.state.caller?.name })
  ctx.body = {
    Status: true,
    Str: `[${ctime(new Date(), parts.config.timeZone)}] successfully started capture [${baseName}]`,
    StreamName: report.name,
    StartTS: String(report.startNs),
    State: report.state,
    ...(report.ports.length === 0 ? { Warning: NO_PORT } : {}),
  }
}

const NO_PORT = 'no capture port is configured on this device: the capture will stay empty'

/** `Until=next` also stops a capture started by a schedule, until its next start. */
export async function stopCapture(ctx: ApplianceContext, parts: ApplianceParts): Promise<void> {
  refuseCrossSite(ctx.req)
  const { stopsScheduled } = takeParameters(ctx, STOP_PARAMETERS)
  const stopped = await askRecorder(parts.recorder, (recorder, limit) =>
    recorder.stopCapture(stopsScheduled, limit),
  )
  await parts.sensors.captureChanged()
  ctx.set('Cache-Control', 'no-store')
  parts.log.info('capture.stopped', { name: stopped.name, user: ctx.state.caller?.name })
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
