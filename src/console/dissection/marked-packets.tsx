/** Marks packets, and saves the marked ones as a file. */
import type { Packet } from '../inside/pcap-packets.ts'
import { TEXTS } from '../texts.ts'
import { pcapngFile } from './pcapng-file.ts'

interface MarkedPacketsProps {
  readonly packets: readonly Packet[]
  /** Numbers of packets, from 1. */
  readonly marked: ReadonlySet<number>
  readonly current: number | undefined
  readonly onMark: (number: number) => void
}

export function MarkedPackets({ packets, marked, current, onMark }: MarkedPacketsProps) {
  const { dissection: texts } = TEXTS
  const chosen = packets.filter((_, index) => marked.has(index + 1))
  return (
    <div class="controls">
      {current === undefined ? null : (
        <button type="button" aria-pressed={marked.has(current)} onClick={() => onMark(current)}>
          {texts.mark}
        </button>
      )}
      <button type="button" disabled={chosen.length === 0} onClick={() => save(chosen)}>
        {texts.saveMarked(chosen.length)}
      </button>
    </div>
  )
}

function save(packets: readonly Packet[]): void {
  const url = URL.createObjectURL(new Blob([pcapngFile(packets)], { type: 'application/x-pcapng' }))
  const link = document.createElement('a')
  link.href = url
  link.download = 'marked.pcapng'
  link.click()
  URL.revokeObjectURL(url)
}
