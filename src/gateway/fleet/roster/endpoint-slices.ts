/** Reads EndpointSlice objects (discovery.k8s.io/v1); anything that does not conform to that API is skipped. */
import { isIP } from 'node:net'
import { z } from 'zod'
import type { FoundDevice } from './discovered-devices.ts'

const condition = z.boolean().nullish()
const endpointSchema = z.object({
  addresses: z.array(z.string()).min(1),
  conditions: z.object({ ready: condition, serving: condition, terminating: condition }).nullish(),
  hostname: z.string().nullish(),
  nodeName: z.string().nullish(),
  targetRef: z.object({ name: z.string() }).nullish(),
})

export const endpointSliceSchema = z.object({
  metadata: z.object({ name: z.string() }),
  endpoints: z.array(z.unknown()).nullish(),
  ports: z.array(z.object({ name: z.string().nullish(), port: z.number().nullish() })).nullish(),
})

export type EndpointSlice = z.infer<typeof endpointSliceSchema>

export interface SliceReading {
  /** The name or number of a port; undefined = the first. */
  readonly port?: string | undefined
  /** What a device is named after: the pod, or the host name, of its endpoint, or the node that it runs on. */
  readonly nameBy: 'pod' | 'node'
}

/** Suitability of an endpoint's pod: if several have the same name, the one with the lowest rank is used. */
const RANK = { serving: 0, notReady: 1, terminating: 2 } as const

interface RankedDevice extends FoundDevice {
  readonly rank: number
}

/**
 * The devices of all slices, sorted by name. A pod that is not ready is included: if it were left out, its packets
 * would silently be missing from what is read from all devices. The gateway's own probes show whether it answers.
 */
export function devicesOfSlices(
  slices: Iterable<EndpointSlice>,
  reading: SliceReading,
): readonly FoundDevice[] {
  const found = [...slices].flatMap((slice) => devicesOfSlice(slice, reading))
  // A pod with two address families is in a slice of each; the IPv4 address sorts first and is used.
  found.sort((a, b) => a.name.localeCompare(b.name, 'en') || a.rank - b.rank || isIP(a.host) - isIP(b.host))
  return found
    .filter((device, index) => !isStoodFor(device, found[index - 1]))
    .map(({ rank: _rank, ...device }) => device)
}

function devicesOfSlice(slice: EndpointSlice, { port: wantedPort, nameBy }: SliceReading): RankedDevice[] {
  const ports = slice.ports ?? []
  const chosen = ports.find(
    ({ name, port }) => wantedPort === undefined || [name, String(port)].includes(wantedPort),
  )
  return (slice.endpoints ?? []).flatMap((value) => {
    const endpoint = endpointSchema.safeParse(value).data
    if (endpoint === undefined) return []
    // Only the first address counts, according to the documentation of the type.
    const [host = ''] = endpoint.addresses
    const ofPod = endpoint.targetRef?.name ?? endpoint.hostname ?? ''
    const name = nameBy === 'node' ? (endpoint.nodeName ?? '') : ofPod
    return [{ name, host, port: chosen?.port ?? 0, addresses: [host], rank: rankOf(endpoint) }]
  })
}

/** While pods are replaced, a node has two of them; two that are serving have one name by mistake. */
function isStoodFor(device: RankedDevice, before: RankedDevice | undefined): boolean {
  if (before?.name !== device.name) return false
  return device.rank > RANK.serving || isIP(before.host) !== isIP(device.host)
}

function rankOf({ conditions }: z.infer<typeof endpointSchema>): number {
  if (conditions?.terminating === true) return RANK.terminating
  // A Service may publish addresses as ready that are not (publishNotReadyAddresses).
  return (conditions?.serving ?? conditions?.ready) === false ? RANK.notReady : RANK.serving
}
