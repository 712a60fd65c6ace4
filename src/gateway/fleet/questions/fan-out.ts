import { CapfleetError } from '../../../shared/base/error.ts'
import { failuresText } from '../../../shared/base/list-text.ts'
import { parseIgnoredNames } from '../../../shared/query/ignored-names.ts'
import { ANSWER_BYTES_MAX, type TimeLimit } from '../../device/device-client.ts'
import { deviceFailure, deviceProtocol } from '../../device/device-failure.ts'
import { nestsTooDeep } from '../../device/device-json.ts'
import { withoutQueries } from '../../device/emptied-queries.ts'
import type { FleetMember } from '../fleet.ts'
import type { CallLimits } from './call-limits.ts'

/**
 * One device's reply to a call that went to several; `json` is its answer as returned by asJson(), `ignored` are the
 * parameters that it did not support.
 */
export type DeviceReply =
  | { readonly device: string; readonly json: string; readonly ignored?: readonly string[] }
  | { readonly device: string; readonly error: CapfleetError }

export interface FanOutOptions extends TimeLimit {
  /**
   * Time limit of a call that only reads, for a device that did not answer its last probe: it may be back, but callers
   * should not wait for it.
   */
  readonly downTimeoutMs: number
  readonly callLimits: CallLimits
  /** The user who makes the calls. */
  readonly user: string
  /** Whether the calls change something on the devices; such a call is never sent twice. */
  readonly isChange: boolean
  /** Omits the gateway's credentials, for a caller who has none. */
  readonly isAnonymous: boolean
  /** Whether other users' queries are emptied in the replies. */
  readonly emptiesQueries: boolean
}

/** Sends the same request to all devices concurrently; resolves when each has answered or failed. */
export async function fanOut(
  members: readonly FleetMember[],
  target: string,
  options: FanOutOptions,
): Promise<readonly DeviceReply[]> {
  const replies = await Promise.all(members.map((member) => askOne(member, target, options)))
  options.signal.throwIfAborted()
  return replies
}

async function askOne(
  { device: { name }, client, breaker, health }: FleetMember,
  target: string,
  options: FanOutOptions,
): Promise<DeviceReply> {
  try {
    const { callLimits, user, emptiesQueries, downTimeoutMs, ...asked } = options
    const isDown = health.report.reachable === false && !asked.isChange
    const limit = { ...asked, timeoutMs: isDown ? Math.min(downTimeoutMs, asked.timeoutMs) : asked.timeoutMs }
    let ignored: readonly string[] = []
    const onHeaders = (headers: Readonly<Record<string, string>>) => {
      ignored = parseIgnoredNames(headers['capfleet-ignored'])
    }
    const ask = async () => {
      const text = await client.getText(target, { ...limit, onHeaders, bytesMax: ANSWER_BYTES_MAX.control })
      return asJson(name, emptiesQueries ? withoutQueries(text) : text)
    }
    const json = await callLimits.run({ device: name, user }, () => breaker.run(ask))
    return { device: name, json, ignored }
  } catch (error) {
    return { device: name, error: deviceFailure(name, error) }
  }
}

/**
 * The replies as JSON, {"Devices":[{Device, Status, Body} or {Device, Status, error}]}. A device's own JSON is copied
 * verbatim: parsing it would change integers beyond 2^53.
 */
export function formatReplies(replies: readonly DeviceReply[]): string {
  const entries = replies.map((reply) => {
    const device = `"Device":${JSON.stringify(reply.device)}`
    if ('json' in reply) return `{${device},"Status":200,"Body":${reply.json}}`
    const { code, message, kind } = reply.error
    return `{${device},"Status":${kind.status},"error":${JSON.stringify({ code, detail: message })}}`
  })
  return `{"Devices":[${entries.join(',')}]}`
}

/** Parameters that a device did not support, each once. */
export function ignoredOf(replies: readonly DeviceReply[]): readonly string[] {
  return [...new Set(replies.flatMap((reply) => ('json' in reply ? (reply.ignored ?? []) : [])))]
}

/** 200 if all succeeded, 207 if some did. Throws the failure if all failed alike. */
export function statusOf(replies: readonly DeviceReply[]): 200 | 207 {
  const errors = replies.flatMap((reply) => ('error' in reply ? [reply.error] : []))
  const [first] = errors
  if (first === undefined) return 200
  if (errors.length < replies.length || errors.some(({ kind }) => kind.status !== first.kind.status))
    return 207
  const failed = replies.flatMap((reply) =>
    'error' in reply ? [{ device: reply.device, message: reply.error.message }] : [],
  )
  throw new CapfleetError(first.code, failuresText(failed), {
    ...first.details,
    members: { ...first.details.members, devices: replies.map(({ device }) => device) },
  })
}

/**
 * The answer of `device` as JSON: an object or a list unchanged, any other text as a string, since a bare number could
 * exceed the precision of a double. Fails with device-protocol if it is nested too deep.
 */
export function asJson(device: string, text: string): string {
  if (!/^\s*[[{]/.test(text)) return JSON.stringify(text)
  if (nestsTooDeep(text)) throw deviceProtocol(device, 'sent JSON that is nested too deep')
  try {
    JSON.parse(text)
    return text
  } catch {
    // The text only looked like JSON.
    return JSON.stringify(text)
  }
}
