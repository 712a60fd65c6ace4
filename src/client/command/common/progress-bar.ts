/**
 * Progress of a long task on stderr: on a terminal one line with bar, rate and ETA, redrawn in
 * place; elsewhere (a log, a pipe) a plain line at the end only.
 */
import type { WriteStream } from 'node:tty'
import { bytesText } from '../../../shared/base/amounts.ts'

export interface ProgressBar {
  /** `done` and `total` in bytes, undefined if unknown. May be called at any rate. */
  update(done: number, total: number | undefined): void
  /** Shows a text instead of the bar, until the next update. */
  tell(text: string): void
  /** Ends the line. */
  finish(summary: string): void
  /** Removes the line, for a message that follows. */
  clear(): void
}

const REDRAW_MS = 100
const BAR_WIDTH = 24

export interface ProgressOptions {
  readonly out?: WriteStream | NodeJS.WriteStream
  /** Bytes that were there before; they count for the percentage, not for the rate. */
  readonly from?: number
}

export function createProgressBar(
  label: string,
  { out = process.stderr, from = 0 }: ProgressOptions = {},
): ProgressBar {
  const startedMs = performance.now()
  const emptyLine = out.isTTY ? '\r\u001b[K' : ''
  let drawnMs = Number.NEGATIVE_INFINITY
  return {
    update(done, total) {
      const nowMs = performance.now()
      if (!out.isTTY || nowMs - drawnMs < REDRAW_MS) return
      drawnMs = nowMs
      const elapsedS = (nowMs - startedMs) / 1000
      out.write(`${emptyLine}${progressLine(label, { done, total, elapsedS, from })}`)
    },
    tell(text) {
      if (out.isTTY) out.write(`${emptyLine}${label}: ${text}`)
    },
    finish(summary) {
      out.write(`${emptyLine}${label}: ${summary}\n`)
    },
    clear() {
      if (out.isTTY) out.write(emptyLine)
    },
  }
}

export interface ProgressPlace {
  readonly done: number
  readonly total: number | undefined
  readonly elapsedS: number
  readonly from?: number
}

/** "import a.pcap [######------] 52% 210 MiB 180 MiB/s ETA 1 s"; without a total "import a.pcap 210 MiB 180 MiB/s" */
export function progressLine(label: string, { done, total, elapsedS, from = 0 }: ProgressPlace): string {
  const rate = elapsedS > 0 ? (done - from) / elapsedS : 0
  const amount = `${bytesText(done)} ${bytesText(rate)}/s`
  if (total === undefined) return `${label} ${amount}`
  const share = total > 0 ? Math.min(1, done / total) : 0
  const filled = Math.round(share * BAR_WIDTH)
  const eta = rate > 0 ? `ETA ${Math.ceil(Math.max(0, total - done) / rate)} s` : ''
  const bar = `[${'#'.repeat(filled)}${'-'.repeat(BAR_WIDTH - filled)}]`
  return `${label} ${bar} ${Math.floor(share * 100)}% ${amount} ${eta}`.trimEnd()
}
