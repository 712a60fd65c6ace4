import type { FlowPacket } from './flow-packet.ts'

/** A flow and its start time. */
export interface Flow {
  readonly startNs: bigint
  readonly packets: readonly FlowPacket[]
}

export interface ScheduleOptions {
  readonly startNs: bigint
  readonly durationNs: bigint
  /** Flows are started until they contain this many packets in total. */
  readonly packets: number
  makeFlow(startNs: bigint): readonly FlowPacket[]
}

/** The last flows begin a little before the end, so that most of them end within the duration. */
const LAST_START = 97n

/**
 * Flows in order of their beginning, at an even rate: a flow begins when the fraction of the packets planned so far
 * equals the fraction of the time that has passed. Generated one by one, on demand.
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
