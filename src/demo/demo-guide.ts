/** What the demo prints when it is ready: how to sign in, and lines to paste into a shell. */

import { DEMO_SITES, DEMO_USER } from './demo-home.ts'
import type { LiveCapture } from './live-capture-demo.ts'

export interface CaptureRange {
  readonly beginNs: bigint
  readonly endNs: bigint
  /** A capture to show, and the device that holds it. */
  readonly captureName: string
  readonly device: string
}

/** The fleet-wide example shows the first seconds, not minutes of output. */
const EXAMPLE_NS = 10_000_000_000n

export interface DemoFacts {
  readonly gatewayUrl: string
  readonly password: string
  /** Whether the page has the tour. */
  readonly hasTour: boolean
  /** The credentials: a password on a command line would be in the shell's history, and visible in `ps`. */
  readonly netrcPath: string
  readonly range: CaptureRange
  /** undefined = no packets are being captured. */
  readonly live: LiveCapture | undefined
}

const TOUR_HINT = `
The traffic contains an incident. The page has a tour of five questions about it.
`

export function demoGuide(at: DemoFacts): string {
  const { gatewayUrl, range } = at
  const curl = `curl -fsS --netrc-file ${quoted(at.netrcPath)}`
  const exampleEndNs = range.beginNs + EXAMPLE_NS < range.endNs ? range.beginNs + EXAMPLE_NS : range.endNs
  return `
Three devices (${DEMO_SITES.map(({ name }) => name).join(', ')}) behind one URL; Ctrl-C stops everything.

  Page      ${gatewayUrl}/
  User      ${DEMO_USER}
  Password  ${at.password}
${at.hasTour ? TOUR_HINT : ''}
In another shell, with user and password in ${at.netrcPath}:

  # all devices, one time-ordered PCAP
  ${curl} "${gatewayUrl}/api/v1/pcap/timerange?TSBegin=${range.beginNs}&TSEnd=${exampleEndNs}" | tcpdump -nr -

  # one device's capture, filtered and compressed
  ${curl} "${gatewayUrl}/devices/${range.device}/api/v1/pcap/single?StreamName=${range.captureName}&FilterBPF=tcp+port+443&Compression=zstd" | zstd -dc | tcpdump -nr -

  # all captures
  ${curl} "${gatewayUrl}/stream/list"
${at.live === undefined ? '' : liveGuide(at.live, `${curl} -N "${gatewayUrl}`)}
`
}

/** `curl` must not buffer its output (-N). */
function liveGuide({ device, captureName }: LiveCapture, curl: string): string {
  return `
  # live packets of ${device}, and the state of its capture
  ${curl}/devices/${device}/api/v1/pcap/single?StreamName=${captureName}&Follow=1" | tcpdump -nr -
  ${curl}/devices/${device}/sysmaster/capture_status"

  # live events of ${device}
  ${curl}/devices/${device}/api/v1/system/events?LastEventID=0"
`
}

/** Quotes a path so that it is one word for a shell. */
function quoted(path: string): string {
  return /^[A-Za-z0-9/._-]+$/.test(path) ? path : `'${path.replaceAll("'", `'\\''`)}'`
}
