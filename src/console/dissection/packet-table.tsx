/** Wireshark's packet list, with the device of each packet. */
import { useEffect, useRef } from 'preact/hooks'
import type { Packet } from '../inside/pcap-packets.ts'
import { tableLabel } from '../parts/data-table.tsx'
import { useSeenRows } from '../parts/virtual-rows.ts'
import { TEXTS } from '../texts.ts'
import type { PacketList } from './packet-rows.ts'

const ROW_PX = 24
/** Where the column with the device is: after number and time. */
const DEVICE_COLUMN = 2
const NUMERIC: ReadonlySet<string> = new Set(['No.', 'Time', 'Length'])
/** Of the list that stays in sight when a page is turned. */
const KEPT_ROWS = 1

interface PacketTableProps {
  readonly list: PacketList
  /** Wireshark's columns. */
  readonly columns: readonly string[]
  readonly packets: readonly Packet[]
  /** Place in the list. */
  readonly chosen: number
  readonly onChoose: (place: number) => void
  readonly marked: ReadonlySet<number>
  readonly onMark: (number: number) => void
  /** Enter: to the fields of the chosen packet. */
  readonly onEnter: () => void
}

export function PacketTable(props: PacketTableProps) {
  const { list, columns, packets, chosen, onChoose, marked } = props
  const scroller = useRef<HTMLElement>(null)
  const { first, last, heightPx } = useSeenRows(scroller, () => ROW_PX, list.matched)
  useEffect(() => list.want(first, last), [list.filter, list.matched, first, last])
  useEffect(() => {
    const element = scroller.current
    if (element === null) return
    const head = element.querySelector('thead')?.clientHeight ?? 0
    const top = chosen * ROW_PX
    if (top < element.scrollTop) element.scrollTop = top
    else if (top + ROW_PX + head > element.scrollTop + element.clientHeight)
      element.scrollTop = top + ROW_PX + head - element.clientHeight
  }, [chosen, list.filter])
  const pageRows = Math.max(1, Math.floor(heightPx / ROW_PX) - 1 - KEPT_ROWS)
  const shownColumns = columns.toSpliced(DEVICE_COLUMN, 0, TEXTS.dissection.device)
  const places = Array.from({ length: Math.max(0, last - first) }, (_, index) => first + index)
  return (
    <section
      ref={scroller}
      class="table-scroller dissected-list"
      // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keys
      tabIndex={0}
      aria-label={tableLabel(TEXTS.dissection.packets)}
      onKeyDown={(event) => onKey(event, props, pageRows)}
    >
      <table aria-rowcount={list.matched + 1} style={{ '--row': `${ROW_PX}px` }}>
        <thead>
          <tr>
            {shownColumns.map((name) => (
              <th key={name} scope="col" class={NUMERIC.has(name) ? 'number' : undefined}>
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          <Room rows={first} />
          {places.map((place) => {
            const row = list.rows.get(place)
            const device = packets[(row?.number ?? 0) - 1]?.device ?? ''
            const cells = row?.columns.toSpliced(DEVICE_COLUMN, 0, device) ?? shownColumns.map(() => '')
            return (
              <tr
                key={place}
                data-number={row?.number}
                aria-rowindex={place + 2}
                aria-current={place === chosen ? 'true' : undefined}
                class={row !== undefined && marked.has(row.number) ? 'marked' : undefined}
                onClick={() => onChoose(place)}
              >
                {cells.map((text, column) => (
                  <td key={column} class={NUMERIC.has(shownColumns[column] ?? '') ? 'number' : undefined}>
                    {text}
                  </td>
                ))}
              </tr>
            )
          })}
          <Room rows={list.matched - last} />
        </tbody>
      </table>
    </section>
  )
}

/** In place of the rows out of sight. */
function Room({ rows }: { readonly rows: number }) {
  return rows <= 0 ? null : <tr style={{ height: `${rows * ROW_PX}px` }} />
}

function onKey(event: KeyboardEvent, props: PacketTableProps, pageRows: number): void {
  const { list, chosen, onChoose, onMark, onEnter } = props
  const steps: Readonly<Record<string, number>> = {
    ArrowDown: 1,
    ArrowUp: -1,
    PageDown: pageRows,
    PageUp: -pageRows,
    Home: -list.matched,
    End: list.matched,
  }
  const step = steps[event.key]
  const number = list.rows.get(chosen)?.number
  if (step !== undefined) onChoose(Math.min(list.matched - 1, Math.max(0, chosen + step)))
  else if (event.key === 'Enter') onEnter()
  else if (event.key.toLowerCase() === 'm' && number !== undefined) onMark(number)
  else return
  event.preventDefault()
}
