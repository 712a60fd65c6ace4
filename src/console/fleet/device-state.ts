/** How devices do: what the gateway's probes found, and beside it what the devices that are looked at say of their capture. */
import { answered, gateway, type Schemas } from '../base/ask-gateway.ts'

export type DeviceReport = Schemas['Device']

export interface CaptureFacts {
  readonly state: string
  readonly name: string
  readonly message: string
  readonly bitsPerSecond: number
  readonly packetsPerSecond: number
  readonly drops: string
  readonly freeGb: number | undefined
}

/** A call names so many devices at most. */
export const DEVICES_ASKED_MAX = 48

interface Reply {
  readonly Device: string
  readonly Status: number
  readonly Body?: unknown
}

export async function askDevices(signal: AbortSignal): Promise<readonly DeviceReport[]> {
  return (await answered(gateway.GET('/v1/devices', { signal }))).devices
}

/** Devices that do not answer are left out. */
export async function askCaptureFacts(
  devices: readonly string[],
  signal: AbortSignal,
): Promise<ReadonlyMap<string, CaptureFacts>> {
  const query = { Device: devices.slice(0, DEVICES_ASKED_MAX).join(',') }
  const [captures, systems] = await Promise.all([
    answered(gateway.GET('/sysmaster/capture_status', { params: { query }, signal })),
    answered(gateway.GET('/api/v1/system/status', { params: { query }, signal })),
  ])
  const free = new Map(
    repliesOf(systems).map(({ Device, Body }) => [Device, freeGb(Body as Schemas['SystemStatus'])]),
  )
  return new Map(
    repliesOf(captures).map(({ Device, Body }) => {
      const status = Body as Schemas['CaptureStatus']
      const facts = {
        state: status.State,
        name: status.CaptureName || status.StreamName,
        message: status.Message,
        bitsPerSecond: status.CaptureBps,
        packetsPerSecond: status.CapturePps,
        drops: String(status.CaptureDropExact ?? status.CaptureDrop),
        freeGb: free.get(Device),
      }
      return [Device, facts]
    }),
  )
}

function repliesOf(answer: unknown): readonly Reply[] {
  return (answer as { readonly Devices: readonly Reply[] }).Devices.filter(({ Status }) => Status === 200)
}

/** A sensor that the machine lacks reads 0, and is named. */
function freeGb({ disk }: Schemas['SystemStatus']): number | undefined {
  return disk.unavailable?.includes('FreeGB_Store0') ? undefined : disk.FreeGB_Store0
}
