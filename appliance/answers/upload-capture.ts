/** POST /v1/captures: a capture file, sent as the body of the request, becomes a capture. */
import type { z } from 'zod'
import { CapfleetError } from '../../src/shared/base/error.ts'
import { aborted } from '../../src/shared/base/program.ts'
import type { CAPTURE_UPLOADED } from '../../src/shared/contract/capture-answers.ts'
import { UPLOAD_PARAMETERS } from '../../src/shared/contract/device-parameters.ts'
import { takeParameters } from '../../src/shared/contract/request-parameters.ts'
import { refuseCrossSite } from '../../src/shared/http/cross-site.ts'
import type { UploadedBody } from '../../src/shared/http/uploaded-body.ts'
import type { ApplianceContext, ApplianceParts } from '../appliance-parts.ts'
import type { ImportedCapture, StreamedImport } from '../link/import-request.ts'
import { withClientSignal } from '../request/client-signal.ts'
import { callerOf } from '../request/labelled-caller.ts'

/** An upload never removes packets of other captures to make room: that is left to operators. */
export async function uploadCapture(ctx: ApplianceContext, parts: ApplianceParts): Promise<void> {
  refuseCrossSite(ctx.req)
  const { captureName: name, fileName: source } = takeParameters(ctx, UPLOAD_PARAMETERS)
  const { user, id } = callerOf(ctx)
  parts.draining.throwIfAborted()
  using file = parts.uploads.bodyOf(ctx)
  using upload = parts.uploads.begin(id, { requestId: ctx.state.requestId, name, source, user })
  try {
    await withClientSignal(ctx, async (gone) => {
      const record = await importUpload(
        ctx,
        parts,
        { name, source, inputBytes: file.announcedBytes },
        file,
        gone,
      )
      upload.end('complete', { bytes: file.bytes, packets: String(record.packets) })
      ctx.status = 201
      ctx.body = answerOf(record)
    })
    if (ctx.respond === false) upload.end('client-gone', { bytes: file.bytes })
  } catch (error) {
    const { code, kind } = error instanceof CapfleetError ? error : { code: undefined, kind: undefined }
    upload.end(kind?.blame === 'caller' ? 'refused' : 'failed', { bytes: file.bytes, code })
    throw error
  }
}

/** Fails with the reason of `gone` if the client has left, whatever failed because of that. */
async function importUpload(
  { state }: ApplianceContext,
  { recorder, sensors }: ApplianceParts,
  request: StreamedImport,
  file: UploadedBody,
  gone: AbortSignal,
): Promise<ImportedCapture> {
  const { revoked } = state.caller ?? {}
  const signal = revoked === undefined ? gone : AbortSignal.any([gone, revoked])
  try {
    const record = await recorder.importStream(request, file.pieces(), { signal })
    await sensors.captureChanged()
    return record
  } catch (error) {
    // The connection has broken: that aborts in a moment.
    if (file.isBroken) await aborted(gone)
    gone.throwIfAborted()
    throw error instanceof CapfleetError ? inParameters(error) : error
  }
}

/** Members of the recorder's request, and the parameters that they come from. */
const PARAMETERS: Readonly<Record<string, string>> = {
  name: UPLOAD_PARAMETERS.captureName.name,
  source: UPLOAD_PARAMETERS.fileName.name,
}

function inParameters(error: CapfleetError): CapfleetError {
  const { param } = error.details
  const name = param === undefined ? undefined : PARAMETERS[param]
  if (name === undefined) return error
  return new CapfleetError(error.code, error.message, { ...error.details, param: name, cause: error })
}

function answerOf(record: ImportedCapture): z.infer<typeof CAPTURE_UPLOADED> {
  return {
    StreamName: record.name,
    Packets: String(record.packets),
    Bytes: String(record.bytes),
    StartTS: String(record.startNs),
    EndTS: String(record.endNs),
    OutOfTimeRange: String(record.packetsOutOfTimeRange),
    Damages: record.damages.map(({ offset, compressed, message }) => ({
      Offset: String(offset),
      Compressed: compressed,
      Message: message,
    })),
    Notes: (record.notes ?? []).map(({ message }) => message),
  }
}
