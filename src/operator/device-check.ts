/**
 * The questions of `capfleet device check`: everything that the gateway needs from a device, what works, what does not,
 * and the consequences for downloads. It takes at most one stream, and changes nothing.
 */
import { type Finding, FindingList } from '../../appliance/doctor/finding.ts'
import type { Device } from '../gateway/device/device.ts'
import { ANSWER_BYTES_MAX, DeviceClient } from '../gateway/device/device-client.ts'
import { type DeviceKind, isForeign } from '../gateway/device/device-kind.ts'
import { lacksProof, proveFilters } from '../gateway/fetch/proof/proved-filters.ts'
import { type CaptureEntry, newestFirst, readCaptureEntry } from '../gateway/fleet/captures/capture-entry.ts'
import { probeClock, probeStatus, probeVersion } from '../gateway/fleet/health/device-probe.ts'
import { CapfleetError } from '../shared/base/error.ts'
import { attempt, CALLER, type Check, NS_PER_S, TIMEOUT_MS } from './check-parts.ts'
import { checkHeeded, checkStream } from './stream-check.ts'

const LIST_LIMITS = { bytesMax: 64 * 1_048_576, entriesMax: 1_000_000 }
const SKEWED_NS = 60n * NS_PER_S

/**
 * Runs the checks in the order in which a gateway needs them; a device that does not answer at all, or rejects our
 * credentials, is not asked further. `tell` is called with each question before its answer arrives.
 */
export async function checkDevice(
  device: Device,
  signal: AbortSignal,
  tell: (question: string) => void = () => undefined,
): Promise<readonly Finding[]> {
  const findings = new FindingList(device.name)
  const client = new DeviceClient(device, { connectTimeoutMs: TIMEOUT_MS, idleTimeoutMs: TIMEOUT_MS })
  const check = { client, name: device.name, findings, signal }
  const ask = (question: string) => tell(`${question} (at most ${TIMEOUT_MS / 1000} s)`)
  try {
    ask('its version')
    const kind = await checkVersion(check, device.kind)
    if (kind === undefined) return findings.findings
    ask('its clock')
    await checkTime(check)
    ask('its readers')
    await checkReaders(check)
    ask('its list of captures')
    const list = await checkList(check)
    if (list === 'rejects us') return findings.findings
    if (isForeign(kind)) noteForeign(check)
    else {
      ask('whether it filters')
      await checkFilters(check)
      ask('an estimate')
      await checkEstimates(check)
    }
    if (list === undefined) return findings.findings
    ask('a second of packets')
    const isSent = await checkStream(check, list, kind)
    if (!isSent || !isForeign(kind)) return findings.findings
    ask('whether it applies filters')
    await checkHeeded(check, list, kind)
    return findings.findings
  } finally {
    client.close()
  }
}

async function checkVersion(
  { client, findings, signal }: Check,
  configured: DeviceKind | undefined,
): Promise<DeviceKind | undefined> {
  const answer = await attempt(() => probeVersion(client, { timeoutMs: TIMEOUT_MS, signal }), signal)
  if (answer instanceof CapfleetError) {
    const fix = 'the gateway considers it down, and sends it no requests'
    findings.problem('version', { detail: answer.message, fix })
    return undefined
  }
  const { version = 'no version', kind, lack } = answer
  const maker = MAKERS[kind]
  if (lack !== undefined && (configured === undefined || configured === kind)) {
    findings.warn('version', { detail: `${lack.detail}; ${maker}`, fix: LACKS[kind] })
    return kind
  }
  if (configured === undefined || configured === kind) findings.ok('version', `${version}, ${maker}`)
  else {
    const fix = `leave kind out, or write kind: ${kind}`
    findings.warn('version', { detail: `${version}, ${maker}; configured as kind: ${configured}`, fix })
  }
  return configured ?? kind
}

const MAKERS: Readonly<Record<DeviceKind, string>> = {
  capfleet: 'capfleet',
  api: 'third-party',
  legacy: 'third-party, without the paths below /api/v1/',
}

const LACKS: Readonly<Record<DeviceKind, string>> = {
  capfleet: '',
  api: 'its version is not known; this has no effect',
  legacy:
    'the gateway uses its paths below /pcap/: time ranges span at most two captures and have no filter, and filters other than FilterBPF are rejected',
}

async function checkTime({ client, findings, signal }: Check): Promise<void> {
  const clock = await attempt(() => probeClock(client, { timeoutMs: TIMEOUT_MS, signal }), signal)
  if (clock instanceof CapfleetError) {
    const fix = 'the gateway does not know how far its clock is off, and cannot align its packets'
    return findings.warn('clock', { detail: clock.message, fix })
  }
  const { offsetNs, errorNs } = clock
  const [offBy, side] = offsetNs < 0n ? [-offsetNs, 'behind'] : [offsetNs, 'ahead of']
  const detail = `${milliseconds(offBy)} ms ${side} ours, plus or minus ${milliseconds(errorNs)} ms`
  if (offsetNs < SKEWED_NS && offsetNs > -SKEWED_NS) findings.ok('clock', detail)
  else
    findings.warn('clock', {
      detail,
      fix: 'synchronize its clock with NTP or PTP: times such as -15m and now miss its packets',
    })
}

async function checkReaders({ client, findings, signal }: Check): Promise<void> {
  const status = await attempt(() => probeStatus(client, { timeoutMs: TIMEOUT_MS, signal }), signal)
  const fix = 'downloads that other clients run there are noticed only when it rejects a download'
  if (status instanceof CapfleetError) findings.warn('readers', { detail: status.message, fix })
  else if (status.readers === undefined)
    findings.warn('readers', { detail: 'it does not report how many downloads run (cat_EnableCnt)', fix })
  else findings.ok('readers', `it reports its running downloads: ${status.readers}`)
}

/** What is the same for all third-party devices, because the API does not have it. */
function noteForeign({ findings }: Check): void {
  findings.ok(
    'bounds',
    'as with all third-party devices, users whose bounds have a filter get none of its packets',
  )
  findings.ok(
    'estimates',
    'as with all third-party devices, it is not asked for any, and its exports are not split into equal parts',
  )
  findings.ok(
    'resume',
    'as with all third-party devices, a download that breaks off is read again from the beginning and compared',
  )
}

async function checkFilters({ client, name, findings, signal }: Check): Promise<void> {
  const refusal = await attempt(
    () => proveFilters(client, { device: name }, { caller: CALLER, signal }),
    signal,
  )
  if (!(refusal instanceof CapfleetError)) findings.ok('filters', 'it rejects an invalid filter')
  else {
    const fix = 'users whose bounds have a filter get none of its packets'
    const isShown = refusal.code !== 'device-protocol'
    const why = lacksProof(refusal)
      ? NO_PROOF
      : 'it accepted an invalid filter, and may silently ignore others'
    const detail = isShown ? refusal.message : why
    findings.warn('filters', { detail, fix })
  }
}

const NO_PROOF = 'it does not have /api/v1/pcap/estimate, so it cannot show that it rejects invalid filters'

async function checkEstimates({ client, findings, signal }: Check): Promise<void> {
  const target = '/api/v1/pcap/estimate?TSBegin=1&TSEnd=2&TSUnit=nanos'
  const options = { bytesMax: ANSWER_BYTES_MAX.estimate, signal, timeoutMs: TIMEOUT_MS }
  const answer = await attempt(() => client.getJson(target, options), signal)
  if (!(answer instanceof CapfleetError))
    return findings.ok('estimates', 'it can estimate the size of a download')
  const fix = 'estimates leave it out, and its exports are not split into equal parts'
  findings.warn('estimates', { detail: answer.message, fix })
}

/** The newest capture with a known start time. */
async function checkList({
  client,
  name,
  findings,
  signal,
}: Check): Promise<CaptureEntry | 'rejects us' | undefined> {
  const captures: CaptureEntry[] = []
  const read = async () => {
    for await (const texts of client.getList('/stream/list', LIST_LIMITS, { signal }))
      for (const json of texts) captures.push(readCaptureEntry(name, json))
  }
  const failure = await attempt(read, signal)
  if (failure instanceof CapfleetError && failure.code === 'device-rejected') {
    findings.problem('login', { detail: failure.message, fix: 'nothing else was tried' })
    return 'rejects us'
  }
  if (failure instanceof CapfleetError) {
    const fix = 'its captures are not listed, and cannot be downloaded by name'
    findings.problem('list', { detail: failure.message, fix })
    return undefined
  }
  const [newest] = captures.filter(({ startNs }) => startNs > 0n).toSorted(newestFirst)
  if (newest !== undefined)
    findings.ok(
      'list',
      `${captures.length} capture${captures.length === 1 ? '' : 's'}, the newest ${newest.name}`,
    )
  else if (captures.length > 0)
    findings.warn('list', { detail: `${captures.length} captures, none of them with a time`, fix: NOT_TRIED })
  else findings.warn('list', { detail: 'it has no capture', fix: NOT_TRIED })
  return newest
}

const NOT_TRIED = 'no download was tried: check again when it has one'

function milliseconds(ns: bigint): string {
  return (Number(ns) / 1e6).toFixed(1)
}
