/** Captures of a list as time spans. */
import type { Schemas } from '../base/ask-gateway.ts'

export interface CaptureSpan {
  readonly device: string
  readonly name: string
  readonly fromNs: bigint
  readonly toNs: bigint
  readonly isActive: boolean
  /** Null: its device does not report it. */
  readonly packets: string | null
  readonly bytes: string | null
}

/** Members of a list that a third-party device may omit. */
type Listed = Pick<Schemas['FleetCapture'], 'Device' | 'StreamName'> &
  Partial<Pick<Schemas['FleetCapture'], 'StartTS' | 'EndTS' | 'IsActive' | 'PacketCnt' | 'ByteCnt'>>

/** Captures without a time have no place on a timeline. */
export function spansOf(list: readonly Listed[]): CaptureSpan[] {
  return list.flatMap(({ Device, StreamName, StartTS, EndTS = StartTS, IsActive, PacketCnt, ByteCnt }) => {
    if (StartTS === undefined || EndTS === undefined) return []
    const [fromNs, toNs] = [BigInt(StartTS), BigInt(EndTS)]
    const facts = { isActive: IsActive === true, packets: PacketCnt ?? null, bytes: ByteCnt ?? null }
    return [{ device: Device, name: StreamName, fromNs, toNs, ...facts }]
  })
}
