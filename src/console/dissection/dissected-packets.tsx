/** The packets of the selection as Wireshark shows them. It is loaded when "Look inside" is opened. */
import type { ComponentChildren } from 'preact'
import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { countText } from '../../shared/base/amounts.ts'
import { changed, currentState, showState, usePageState } from '../base/page-url.ts'
import type { Packet } from '../inside/pcap-packets.ts'
import { Empty, Failure, Waiting } from '../parts/notice.tsx'
import { TEXTS } from '../texts.ts'
import { filterOfCommunityId, isCommunityId } from './conversation-filter.ts'
import { DisplayFilter } from './display-filter.tsx'
import type { Dissector } from './dissector.ts'
import { MarkedPackets } from './marked-packets.tsx'
import { PacketDetail } from './packet-detail.tsx'
import { usePacketList } from './packet-rows.ts'
import { PacketTable } from './packet-table.tsx'
import { Statistics } from './statistics-view.tsx'
import { useDissection } from './use-dissection.ts'

/** Name of the display filter in the page's address. */
const FILTER = 'display-filter'

interface DissectedPacketsProps {
  readonly build: string
  /** undefined: more of them are on their way. */
  readonly packets: readonly Packet[] | undefined
  /** Shown until the dissector has read the packets, and if it fails. */
  readonly children: ComponentChildren
}

export function DissectedPackets({ build, packets, children }: DissectedPacketsProps) {
  const { dissection: texts } = TEXTS
  const { dissector, opened, failure, again } = useDissection(build, packets)
  if (failure !== undefined)
    return (
      <>
        <Failure failure={failure} again={again} />
        {children}
      </>
    )
  if (dissector === undefined || opened === undefined)
    return (
      <>
        {dissector === undefined ? <Waiting text={texts.starting} /> : null}
        {dissector === undefined || packets === undefined ? null : <Waiting text={texts.reading} />}
        {children}
      </>
    )
  return <OpenPackets dissector={dissector} packets={opened} />
}

interface OpenPacketsProps {
  readonly dissector: Dissector
  readonly packets: readonly Packet[]
}

function OpenPackets({ dissector, packets }: OpenPacketsProps) {
  const { dissection: texts } = TEXTS
  const given = (usePageState().values[FILTER] ?? '').trim()
  const filter = useMemo(
    () => (isCommunityId(given) ? filterOfCommunityId(given, packets) : given),
    [given, packets],
  )
  const list = usePacketList(dissector, filter ?? '')
  const [place, setPlace] = useState(0)
  /** A packet that was chosen by its number, whether or not the list has it. */
  const [jumped, setJumped] = useState<number | undefined>()
  const [marked, setMarked] = useState<ReadonlySet<number>>(new Set())
  const detail = useRef<HTMLDivElement>(null)
  useEffect(() => {
    setPlace(0)
    setJumped(undefined)
  }, [list.filter, packets])
  const show = (next: string): void =>
    showState(changed(currentState(), { [FILTER]: next === '' ? undefined : next }), { isStep: true })
  const mark = (number: number): void => setMarked((before) => before.symmetricDifference(new Set([number])))
  const choose = (next: number): void => {
    setJumped(undefined)
    setPlace(next)
  }
  const jump = (number: number): void => {
    if (list.filter === '') choose(number - 1)
    else setJumped(number)
  }
  const number = jumped ?? list.rows.get(place)?.number
  return (
    <section
      class="dissected"
      aria-label={texts.packets}
      onKeyDown={(event) => {
        const step = event.ctrlKey ? (STEPS[event.key] ?? 0) : 0
        if (step === 0) return
        event.preventDefault()
        event.stopPropagation()
        choose(Math.min(list.matched - 1, Math.max(0, place + step)))
      }}
    >
      <DisplayFilter
        filter={given}
        mistake={filter === undefined ? texts.noConversation : list.mistake}
        onShow={show}
      />
      <p class="controls" role="status">
        <span class="quiet">
          {texts.shown(countText(list.matched), countText(packets.length), dissector.version)}
        </span>
      </p>
      {list.matched === 0 && !list.isAsking ? <Empty>{texts.noMatch}</Empty> : null}
      <PacketTable
        list={list}
        columns={dissector.columns}
        packets={packets}
        chosen={place}
        onChoose={choose}
        marked={marked}
        onMark={mark}
        onEnter={() => detail.current?.querySelector<HTMLElement>('[role=tree]')?.focus()}
      />
      <MarkedPackets packets={packets} marked={marked} current={number} onMark={mark} />
      <Statistics
        dissector={dissector}
        packets={packets}
        filter={list.filter}
        matched={list.matched}
        onFilter={show}
      />
      <div ref={detail}>
        {number === undefined ? null : (
          <PacketDetail
            dissector={dissector}
            number={number}
            packet={packets[number - 1]}
            row={list.rows.get(place)}
            onFilter={show}
            onPacket={jump}
          />
        )}
      </div>
    </section>
  )
}

/** To another packet from anywhere in the view, as in Wireshark. */
const STEPS: Readonly<Record<string, number>> = { ArrowDown: 1, ArrowUp: -1 }
