/**
 * Progress of a long task on stderr: on a terminal one line with bar, rate and ETA, redrawn in
 * place; elsewhere (a log, a pipe) a plain line at the end only.
 */
import type { WriteStream } from 'node:tty'

export interface ProgressBar {
  /** `done` and `total` in bytes. Calls may come at any rate. */
  update(done: number, total: number): void
  /** Ends the line. */
  finish(summary: string): void
  /** Takes the line away, for a message that follows. */
  clear(): void
}

const REDRAW_MS = 100
const BAR_WIDTH = 24

export function createProgressBar(
  label: string,
  out: WriteStream | NodeJS.WriteStream = process.stderr,
): ProgressBar {
  const startedMs = performance.now()
  const emptyLine = out.isTTY ? '\r\u001b[K' : ''
  let drawnMs = Number.NEGATIVE_INFINITY
  return {
    update(done, total) {
      const nowMs = performance.now()
      if (!out.isTTY || nowMs - drawnMs < REDRAW_MS) return
      drawnMs = nowMs
      out.write(`${emptyLine}${progressLine(label, { done, total, elapsedS: (nowMs - startedMs) / 1000 })}`)
    },
    finish(summary) {
      out.write(`${emptyLine}${label}: ${summary}\n`)
    },
    clear() {
      if (out.isTTY) out.write(emptyLine)
    },
  }
}

/** "import a.pcap [######------] 52% 210 MB 180 MB/s ETA 1 s" */
export function progressLine(label: string, at: { done: number; total: number; elapsedS: number }): string {
  const share = at.total > 0 ? Math.min(1, at.done / at.total) : 0
  const filled = Math.round(share * BAR_WIDTH)
  const rate = at.elapsedS > 0 ? at.done / at.elapsedS : 0
  const eta = rate > 0 ? `ETA ${Math.ceil((at.total - at.done) / rate)} s` : ''
  const bar = `[${'#'.repeat(filled)}${'-'.repeat(BAR_WIDTH - filled)}]`
  return `${label} ${bar} ${Math.floor(share * 100)}% ${formatBytes(at.done)} ${formatBytes(rate)}/s ${eta}`.trimEnd()
}

export function formatBytes(bytes: number): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB']
  let value = bytes
  let unit = 0
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1000
    unit += 1
  }
  return `${unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${units[unit]}`
}
