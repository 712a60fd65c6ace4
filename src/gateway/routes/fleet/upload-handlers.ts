/** Uploads of capture files to one device, at the root and below /devices/{device}. */
import type { z } from 'zod'
import { CapfleetError } from '../../../shared/base/error.ts'
import type { CAPTURE_UPLOADED } from '../../../shared/contract/capture-answers.ts'
import { DEVICE_API } from '../../../shared/contract/device-api.ts'
import { UPLOAD_PARAMETERS } from '../../../shared/contract/device-parameters.ts'
import { givenParameters } from '../../../shared/contract/request-parameters.ts'
import type { UploadOutcome } from '../../../shared/http/running-uploads.ts'
import type { UploadedBody } from '../../../shared/http/uploaded-body.ts'
import { badParameter } from '../../../shared/query/query-parameters.ts'
import { readParameters } from '../../../shared/query/read-parameters.ts'
import { parseDeviceJson } from '../../device/device-json.ts'
import { isForeign, kindOfAnswer } from '../../device/device-kind.ts'
import { callerLabel } from '../../device/device-request.ts'
import { passUpload, type UploadAnswer } from '../../device/device-upload.ts'
import { passHead } from '../../device/passed-call.ts'
import { type FleetMember, kindOfMember } from '../../fleet/fleet.ts'
import { membersToChange } from '../request/fleet-selection.ts'
import { refuseUnsafeChange, refuseWhileDraining } from '../request/refuse-request.ts'
import { requestSignal } from '../request/request-caller.ts'
import type { RouteContext } from '../request/route-context.ts'
import type { FleetParts } from './fleet-parts.ts'

/** At the root: to the device that the request names. */
export async function uploadToChosenDevice(ctx: RouteContext, parts: FleetParts): Promise<void> {
  const [member, ...others] = membersToChange(ctx, parts)
  if (member === undefined || others.length > 0)
    throw badParameter('Device', 'must name one device; a file is uploaded to one device at a time')
  await upload(ctx, parts, member)
}

export async function uploadToDevice(ctx: RouteContext, parts: FleetParts): Promise<void> {
  await upload(ctx, parts, parts.fleet.choose(ctx.params.device ?? ''))
}

async function upload(ctx: RouteContext, parts: FleetParts, member: FleetMember): Promise<void> {
  refuseUnsafeChange(ctx)
  refuseWhileDraining(parts)
  const { name } = member.device
  ctx.state.facts = { devices: [name] }
  const { captureName, fileName } = readParameters(UPLOAD_PARAMETERS, givenParameters(ctx))
  if (isForeign(kindOfMember(member))) throw takesNoUploads(name)
  const user = ctx.state.caller?.name ?? ''
  using file = parts.uploads.bodyOf(ctx)
  const { requestId } = ctx.state
  using running = parts.uploads.begin(user, { requestId, device: name, capture: captureName, fileName, user })
  try {
    const answer = await passOn(ctx, parts, { member, captureName, fileName, file })
    passHead(member.device, answer, ctx.res)
    ctx.status = answer.status
    ctx.body = answer.body
    const packets = packetsOf(name, answer)
    ctx.state.facts = { devices: [name], bytes: file.bytes, packets }
    running.end(outcomeOf(answer), { status: answer.status, bytes: file.bytes, packets })
  } catch (error) {
    ctx.state.facts = { devices: [name], bytes: file.bytes }
    const { code, kind } = error instanceof CapfleetError ? error : {}
    const outcome = kind?.blame === 'caller' ? 'refused' : 'failed'
    running.end(ctx.res.closed || file.isBroken ? 'client-gone' : outcome, { bytes: file.bytes, code })
    throw error
  }
}

interface GivenUpload {
  readonly member: FleetMember
  readonly captureName: string
  readonly fileName: string
  readonly file: UploadedBody
}

/** The device's answer. Fails if the device does not know uploads. */
async function passOn(
  ctx: RouteContext,
  parts: FleetParts,
  { member, captureName, fileName, file }: GivenUpload,
): Promise<UploadAnswer> {
  const { device, breaker, captures } = member
  const { caller } = ctx.state
  const user = caller?.name ?? ''
  using leaving = requestSignal(ctx)
  const signal = caller === undefined ? leaving.signal : AbortSignal.any([leaving.signal, caller.revoked])
  const query = [
    [UPLOAD_PARAMETERS.captureName.name, captureName],
    [UPLOAD_PARAMETERS.fileName.name, fileName],
  ] as const
  const target = `${DEVICE_API.uploadCapture.path}?${query.map((pair) => pair.map(encodeURIComponent).join('=')).join('&')}`
  const passed = {
    target,
    caller: callerLabel(user),
    file,
    timeoutMs: parts.limits.controlTimeoutMs,
    signal,
  }
  try {
    const call = { device: device.name, user }
    const answer = await parts.callLimits.run(call, () => breaker.run(() => passUpload(device, passed)))
    if (kindOfAnswer(answer.headers) !== 'capfleet') throw takesNoUploads(device.name)
    if (answer.status === 404 || answer.status === 405) throw isTooOld(device.name)
    return answer
  } finally {
    captures.forget()
  }
}

type Uploaded = z.infer<typeof CAPTURE_UPLOADED>

function outcomeOf({ status }: UploadAnswer): UploadOutcome {
  if (status < 400) return 'complete'
  return status < 500 ? 'refused' : 'failed'
}

/** Fails with device-protocol. */
function packetsOf(device: string, { status, body }: UploadAnswer): string | undefined {
  if (status !== 201) return undefined
  const { path } = DEVICE_API.uploadCapture
  const { Packets } = parseDeviceJson(device, body.toString('utf8'), { path }) as Partial<Uploaded>
  return typeof Packets === 'string' && /^\d{1,20}$/.test(Packets) ? Packets : undefined
}

function takesNoUploads(device: string): CapfleetError {
  return new CapfleetError(
    'bad-parameter',
    `device ${device} is a third-party device, and accepts no uploads; choose a device of kind capfleet (GET /v1/devices lists them)`,
    { param: 'Device', members: { devices: [device] } },
  )
}

function isTooOld(device: string): CapfleetError {
  return new CapfleetError(
    'not-implemented',
    `device ${device} runs a capfleet without uploads; upgrade it`,
    {
      members: { devices: [device] },
    },
  )
}
