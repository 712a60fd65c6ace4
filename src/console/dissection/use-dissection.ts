/** A dissector with the shown packets, for as long as a part of the page shows them. */
import { useEffect, useState } from 'preact/hooks'
import type { Packet } from '../inside/pcap-packets.ts'
import { Dissector } from './dissector.ts'
import { pcapngFile } from './pcapng-file.ts'

export interface Dissection {
  readonly dissector: Dissector | undefined
  /** The packets that the dissector has read. */
  readonly opened: readonly Packet[] | undefined
  readonly failure: unknown
  /** Starts another dissector. */
  readonly again: () => void
}

/** `packets`: undefined while they are not complete. */
export function useDissection(build: string, packets: readonly Packet[] | undefined): Dissection {
  const [dissector, setDissector] = useState<Dissector | undefined>()
  const [opened, setOpened] = useState<readonly Packet[] | undefined>()
  const [failure, setFailure] = useState<unknown>()
  const [round, setRound] = useState(0)
  useEffect(() => {
    const leaving = new AbortController()
    const { signal } = leaving
    const fail = (error: unknown): void => {
      if (!signal.aborted) setFailure(error)
    }
    setDissector(undefined)
    setFailure(undefined)
    Dissector.start(build, { signal, onFailure: fail }).then((started) => {
      if (!signal.aborted) setDissector(started)
    }, fail)
    return () => leaving.abort()
  }, [build, round])
  useEffect(() => {
    setOpened(undefined)
    if (dissector === undefined || packets === undefined) return
    const file = pcapngFile(packets)
    const isOfSeveral = new Set(packets.map(({ device }) => device)).size > 1
    let isCurrent = true
    dissector.ask('open', { file, isOfSeveral }, [file.buffer]).then(
      () => {
        if (isCurrent) setOpened(packets)
      },
      // What it is not closed for is reported by the dissector itself.
      () => undefined,
    )
    return () => {
      isCurrent = false
    }
  }, [dissector, packets])
  return { dissector, opened, failure, again: () => setRound((before) => before + 1) }
}
