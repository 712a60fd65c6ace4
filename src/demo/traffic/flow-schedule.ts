import type { FlowPacket } from './flow-packet.ts'

/** A flow and when it begins. */
export interface Flow {
  readonly startNs: bigint
  readonly packets: readonly FlowPacket[]
}

export interface ScheduleOptions {
  readonly startNs: bigint
  readonly durationNs: bigint
  /** Flows begin until they hold this many packets together. */
  readonly packets: number
  makeFlow(startNs: bigint): readonly FlowPacket[]
}

/** The last flows begin a little before the end, so that most of them end within the duration. */
const LAST_START = 97n

/**
 * Flows in order of their beginning, at an even rate: a flow begins when the share of the packets
 * planned so far is the share of the time that has gone by. Made one by one, on demand.
 */
export function* flowSchedule(options: ScheduleOptions): Generator<Flow, void> {
  const { durationNs, packets } = options
  let planned = 0
  while (planned < packets) {
    const elapsedNs = (durationNs * LAST_START * BigInt(planned)) / (100n * BigInt(packets))
    const startNs = options.startNs + elapsedNs
    const flow = options.makeFlow(startNs)
    planned += flow.length
    yield { startNs, packets: flow }
  }
}
