/** Reading EndpointSlice objects (discovery.k8s.io/v1); what is not as documented there is passed over. */
import { isIP } from 'node:net'
import { z } from 'zod'
import type { FoundDevice } from './discovered-devices.ts'

const endpointSchema = z.object({
  addresses: z.array(z.string()).min(1),
  conditions: z.object({ ready: z.boolean().nullish() }).nullish(),
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
  /** The name or the number of a port; undefined = the first. */
  readonly port?: string | undefined
  /** What a device is called after: the pod, or the host name, of its endpoint, or the node that this runs on. */
  readonly nameBy: 'pod' | 'node'
}

/** The devices of all slices, sorted by name. */
export function devicesOfSlices(
  slices: Iterable<EndpointSlice>,
  reading: SliceReading,
): readonly FoundDevice[] {
  const found = [...slices].flatMap((slice) => devicesOfSlice(slice, reading))
  // A pod with two address families is in a slice of each; the IPv4 address comes first and stays.
  found.sort((a, b) => a.name.localeCompare(b.name, 'en') || isIP(a.host) - isIP(b.host))
  return found.filter((device, index) => !isSamePod(device, found[index - 1]))
}

function devicesOfSlice(slice: EndpointSlice, { port: wantedPort, nameBy }: SliceReading): FoundDevice[] {
  const ports = slice.ports ?? []
  const chosen = ports.find(
    ({ name, port }) => wantedPort === undefined || [name, String(port)].includes(wantedPort),
  )
  return (slice.endpoints ?? []).flatMap((value) => {
    const endpoint = endpointSchema.safeParse(value).data
    if (endpoint === undefined || endpoint.conditions?.ready === false) return []
    // Only the first address counts, says the documentation of the type.
    const [host = ''] = endpoint.addresses
    const ofPod = endpoint.targetRef?.name ?? endpoint.hostname ?? ''
    const name = nameBy === 'node' ? (endpoint.nodeName ?? '') : ofPod
    return [{ name, host, port: chosen?.port ?? 0, addresses: [host] }]
  })
}

function isSamePod(device: FoundDevice, before: FoundDevice | undefined): boolean {
  return before?.name === device.name && isIP(before.host) !== isIP(device.host)
}
