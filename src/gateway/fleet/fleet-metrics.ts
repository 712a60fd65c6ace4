import type { Metrics } from '../../shared/base/metrics.ts'
import type { Fleet, FleetMember } from './fleet.ts'
import type { BreakerState } from './health/device-breaker.ts'

const NS_PER_S = 1_000_000_000
const BREAKER_STATES: readonly BreakerState[] = ['closed', 'open', 'trial']

/** Gauges of the devices. A device that is gone has none. */
export function publishFleet(fleet: Fleet, metrics: Metrics): void {
  publishHealth(fleet, metrics)
  publishKnown(fleet, metrics)
}

/** What the devices' last probes found. */
function publishHealth(fleet: Fleet, metrics: Metrics): void {
  const gauge = (name: string, help: string, read: (member: FleetMember) => number | undefined) =>
    metrics.gauge(name, help, ['device'], (gauge) => {
      gauge.reset()
      for (const member of fleet.members) {
        const value = read(member)
        if (value !== undefined) gauge.set({ device: member.device.name }, value)
      }
    })
  gauge('device_up', 'Whether the device answered its last probe', ({ health }) =>
    health.report.reachable === undefined ? undefined : Number(health.report.reachable),
  )
  gauge('device_probe_seconds', 'Response time of the last probe', ({ health }) =>
    health.report.probeMs === undefined ? undefined : health.report.probeMs / 1_000,
  )
  gauge('device_clock_offset_seconds', "The device's clock minus the gateway's", ({ health }) =>
    secondsOf(health.report.clock?.offsetNs),
  )
  gauge('device_clock_error_seconds', 'Maximum error of the clock offset', ({ health }) =>
    secondsOf(health.report.clock?.errorNs),
  )
  gauge(
    'device_readers',
    'Running downloads as the device reports them',
    ({ health }) => health.report.status?.readers,
  )
  gauge('device_oldest_packet_timestamp_seconds', 'Time of the oldest packet of the device', ({ health }) =>
    secondsOf(health.report.oldestPacketNs),
  )
  gauge('device_capture_failing', 'Whether a capture of the device should run but cannot', ({ health }) =>
    isFailing(health.report.status?.capture?.state),
  )
  metrics.totals(
    'device_capture_dropped_packets_total',
    'Packets that the running capture of the device has lost, as the device reports them',
    ['device'],
    (set) => {
      for (const { device, health } of fleet.members) {
        const drops = health.report.status?.capture?.drops
        if (drops !== undefined) set(drops, { device: device.name })
      }
    },
  )
}

/** What the gateway knows of the devices, and what it asks of them now. */
function publishKnown(fleet: Fleet, metrics: Metrics): void {
  metrics.gauge(
    'large_answers',
    'Large lists of devices that are being read or waiting to be read',
    ['state'],
    (gauge) => {
      gauge.set({ state: 'reading' }, fleet.largeAnswers.reading)
      gauge.set({ state: 'waiting' }, fleet.largeAnswers.waiting)
    },
  )
  metrics.gauge('device_kind', 'The kind of each device: 1', ['device', 'kind'], (gauge) => {
    gauge.reset()
    for (const { device } of fleet.members) {
      const kind = fleet.kindOf(device.name)
      if (kind !== undefined) gauge.set({ device: device.name, kind }, 1)
    }
  })
  metrics.gauge(
    'device_lacks',
    'Paths of the API that the device did not answer as the API defines when it was last asked: 1',
    ['device', 'path'],
    (gauge) => {
      gauge.reset()
      for (const { device, health } of fleet.members)
        for (const { path } of health.report.lacks) gauge.set({ device: device.name, path }, 1)
    },
  )
  metrics.gauge('device_breaker', 'State of the breaker of each device', ['device', 'state'], (gauge) => {
    gauge.reset()
    for (const { device, breaker } of fleet.members)
      for (const state of BREAKER_STATES)
        gauge.set({ device: device.name, state }, breaker.state === state ? 1 : 0)
  })
}

/** Returns undefined if the device does not report its state. */
function isFailing(state: string | undefined): number | undefined {
  return state === undefined ? undefined : Number(state === 'error')
}

function secondsOf(ns: bigint | undefined): number | undefined {
  return ns === undefined ? undefined : Number(ns) / NS_PER_S
}
