/** Statistics of the packets in the list, which are not all packets of the selection. */
import { useEffect, useState } from 'preact/hooks'
import { bytesText, countText } from '../../shared/base/amounts.ts'
import { usePageState } from '../base/page-url.ts'
import type { Packet } from '../inside/pcap-packets.ts'
import { conversationLink, hostLink, seenLink } from '../inside/pivot-links.tsx'
import { DataTable } from '../parts/data-table.tsx'
import { Waiting } from '../parts/notice.tsx'
import { TEXTS } from '../texts.ts'
import type { Dissector } from './dissector.ts'
import { type Count, type PacketStatistics, packetStatistics } from './packet-statistics.ts'

/** Rows of each table that are shown. */
const SHOWN_ROWS = 10
/** Wireshark's column with the protocol. */
const PROTOCOL_COLUMN = 'Protocol'

interface StatisticsProps {
  readonly dissector: Dissector
  readonly packets: readonly Packet[]
  /** The display filter of the list, and how many packets pass it. */
  readonly filter: string
  readonly matched: number
  readonly onFilter: (filter: string) => void
}

export function Statistics(props: StatisticsProps) {
  const { statistics: texts } = TEXTS.dissection
  const [isOpen, setOpen] = useState(false)
  return (
    <details class="statistics" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{texts.title(countText(props.matched))}</summary>
      {isOpen ? <Tables {...props} /> : null}
    </details>
  )
}

function Tables({ dissector, packets, filter, matched, onFilter }: StatisticsProps) {
  const { statistics: texts } = TEXTS.dissection
  const [found, setFound] = useState<PacketStatistics | undefined>()
  useEffect(() => {
    let isCurrent = true
    const column = dissector.columns.indexOf(PROTOCOL_COLUMN)
    dissector.ask('rows', { filter, skip: 0, count: matched }).then(
      ({ rows }) => {
        if (!isCurrent) return
        const counted = rows.flatMap(({ number, columns }) => {
          const packet = packets[number - 1]
          return packet === undefined ? [] : [{ packet, protocol: columns[column] ?? '' }]
        })
        setFound(packetStatistics(counted))
      },
      () => undefined,
    )
    return () => {
      isCurrent = false
    }
  }, [dissector, packets, filter, matched])
  if (found === undefined) return <Waiting />
  return (
    <>
      <p class="quiet">{texts.explain}</p>
      <div class="statistics-tables">
        <CountTable label={texts.talkers} counts={found.talkers} onFilter={onFilter} />
        <CountTable label={texts.conversations} counts={found.conversations} onFilter={onFilter} />
        <CountTable label={texts.protocols} counts={found.protocols} onFilter={onFilter} />
      </div>
    </>
  )
}

interface CountTableProps extends Pick<StatisticsProps, 'onFilter'> {
  readonly label: string
  readonly counts: readonly Count[]
}

function CountTable({ label, counts, onFilter }: CountTableProps) {
  const { statistics: texts } = TEXTS.dissection
  const { values } = usePageState()
  const largest = counts[0]?.bytes ?? 0
  return (
    <section>
      <h2>
        {label} <span class="quiet">{countText(counts.length)}</span>
      </h2>
      <DataTable label={label} columns={[label, ...texts.columns]} numbers={[1, 2]}>
        {counts.slice(0, SHOWN_ROWS).map(({ name, packets, bytes, filter, flow, address, firstNs }) => (
          <tr key={name}>
            <td class="mono share" style={{ '--share': bytes / largest }}>
              {name}
            </td>
            <td class="number">{countText(packets)}</td>
            <td class="number">{bytesText(bytes)}</td>
            <td class="card-actions">
              {filter === undefined ? null : (
                <button type="button" class="plain" onClick={() => onFilter(filter)}>
                  {texts.show}
                </button>
              )}{' '}
              {flow === undefined ? null : (
                <a href={conversationLink(flow, firstNs, values)}>{TEXTS.pivots.conversation}</a>
              )}
              {address === undefined ? null : (
                <>
                  <a href={hostLink(address, firstNs, values)}>{TEXTS.pivots.host}</a>{' '}
                  <a href={seenLink(address)}>{TEXTS.pivots.seen}</a>
                </>
              )}
            </td>
          </tr>
        ))}
      </DataTable>
    </section>
  )
}
