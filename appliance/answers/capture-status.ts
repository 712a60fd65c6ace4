/** /sysmaster/capture_status. */

import { takeNoParameters } from '../../src/shared/contract/request-parameters.ts'
import { ctime } from '../../src/shared/query/time/ctime.ts'
import { DOWNLOAD_SLOTS } from '../appliance-config.ts'
import type { ApplianceContext, ApplianceParts } from '../appliance-parts.ts'
import { nowNs } from '../appliance-parts.ts'
import type { RecorderClient } from '../link/recorder-client.ts'
import { withoutStorePath } from '../request/hidden-path.ts'
import { isCapturing } from '../system-status/capture-group.ts'
import { toExactJson } from '../system-status/exact-json.ts'
import { askRecorder, QUESTION_LIMIT_MS } from './ask-recorder.ts'

const NANOS_PER_SECOND = 1_000_000_000n

/** Asks the recorder now; fails with store-unavailable if none is running or it does not answer soon. */
export async function answerCaptureStatus(ctx: ApplianceContext, parts: ApplianceParts): Promise<void> {
  takeNoParameters(ctx)
  const ask = (recorder: RecorderClient, limit: AbortSignal) => recorder.captureReport(limit)
  const report = await askRecorder(parts.recorder, ask, QUESTION_LIMIT_MS)
  const { counts } = report
  const runningNs = report.startNs === 0n ? 0n : nowNs() - report.startNs
  ctx.set('Cache-Control', 'no-store')
  ctx.type = 'json'
  ctx.body = toExactJson({
    Status: true,
    GUIMode: 'full',
    StreamName: report.name,
    // A string, because existing scripts compare it with "true".
    CaptureEnable: String(isCapturing(report)),
    /** Seconds since the start. */
    CaptureTime: Number(runningNs / NANOS_PER_SECOND),
    CaptureByte: counts.bytes,
    CapturePacket: counts.packets,
    CaptureBps: counts.bitsPerSecond,
    CapturePps: counts.packetsPerSecond,
    CurrentTime: ctime(new Date(), parts.config.timeZone),
    CaptureName: report.baseName,
    State: report.state,
    ClockHold: report.clockHold,
    Message: withoutStorePath(report.message, parts.config.store),
    Scheduled: report.scheduleName !== '',
    ScheduleName: report.scheduleName,
    StartTS: String(report.startNs),
    LastPacketTS: String(counts.lastPacketNs),
    FlushedTS: String(counts.flushedNs),
    CaptureDrop: counts.drops,
    CaptureDropRing: counts.ringDrops,
    CaptureDropDisk: counts.diskDrops,
    CapturePending: counts.pendingPackets,
    CaptureFiltered: counts.filteredPackets,
    CaptureFCSError: counts.fcsErrors,
    SlotsTotal: DOWNLOAD_SLOTS,
    SlotsUsed: parts.slots.readersBySlot.size,
  })
}
