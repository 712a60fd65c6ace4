/** The rows of the packet list under a display filter: only those in sight are asked for. */
import { useEffect, useRef, useState } from 'preact/hooks'
import type { PacketRow } from '../../dissector/messages.ts'
import { type Dissector, FilterMistake } from './dissector.ts'

const PAGE_ROWS = 200

export interface ListedRows {
  /** The filter that they pass: the last one without a mistake. */
  readonly filter: string
  readonly matched: number
  /** By their place in the list, from 0. */
  readonly rows: ReadonlyMap<number, PacketRow>
}

export interface PacketList extends ListedRows {
  /** Wireshark's message about the filter. */
  readonly mistake: string | undefined
  readonly isAsking: boolean
  /** Asks for the rows from `first` to `last`, unless they are there. */
  readonly want: (first: number, last: number) => void
}

const NONE: ListedRows = { filter: '', matched: 0, rows: new Map() }

export function usePacketList(dissector: Dissector, filter: string): PacketList {
  const [listed, setListed] = useState<ListedRows>(NONE)
  const [mistake, setMistake] = useState<string | undefined>()
  const [isAsking, setAsking] = useState(true)
  /** Pages that were asked for, under the filter of the list. */
  const asked = useRef({ filter: '', pages: new Set<number>() })
  useEffect(() => {
    let isCurrent = true
    setAsking(true)
    const whenCurrent = (action: () => void): void => {
      if (!isCurrent) return
      setAsking(false)
      action()
    }
    dissector.ask('rows', { filter, skip: 0, count: PAGE_ROWS }).then(
      ({ rows, matched }) =>
        whenCurrent(() => {
          asked.current = { filter, pages: new Set([0]) }
          setMistake(undefined)
          setListed({ filter, matched, rows: placed(rows, 0) })
        }),
      (error: unknown) =>
        whenCurrent(() => setMistake(error instanceof FilterMistake ? error.message : undefined)),
    )
    return () => {
      isCurrent = false
    }
  }, [dissector, filter])
  const want = (first: number, last: number): void => {
    const { pages, filter: own } = asked.current
    if (own !== listed.filter) return
    const lastRow = Math.min(last, listed.matched) - 1
    for (let page = Math.floor(first / PAGE_ROWS); page * PAGE_ROWS <= lastRow; page += 1) {
      if (pages.has(page)) continue
      pages.add(page)
      const skip = page * PAGE_ROWS
      dissector.ask('rows', { filter: own, skip, count: PAGE_ROWS }).then(
        ({ rows }) =>
          setListed((before) =>
            before.filter === own
              ? { ...before, rows: new Map([...before.rows, ...placed(rows, skip)]) }
              : before,
          ),
        () => undefined,
      )
    }
  }
  return { ...listed, mistake, isAsking, want }
}

function placed(rows: readonly PacketRow[], first: number): ReadonlyMap<number, PacketRow> {
  return new Map(rows.map((row, index) => [first + index, row]))
}
