import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Device } from '../../../src/gateway/device/device.ts'
import { DeviceClient } from '../../../src/gateway/device/device-client.ts'
import { DeviceProxy } from '../../../src/gateway/device/device-proxy.ts'
import { passRead } from '../../../src/gateway/device/passed-call.ts'

/** Answers `res` with the device's answer to `target`. */
export type PassCall = (target: string, req: IncomingMessage, res: ServerResponse) => Promise<void>

export const CALLER = 'caller-label'

/** The two ways in which a user's call reaches a device. */
export const PASSING_WAYS: readonly (readonly [
  name: string,
  open: (device: Device, timeoutMs: number) => PassCall,
])[] = [
  [
    'http-proxy',
    (device, timeoutMs) => {
      const { signal: ending } = new AbortController()
      const proxy = new DeviceProxy({ timeoutMs, ending })
      return (target, req, res) => proxy.forward(device, { target, caller: CALLER }, req, res)
    },
  ],
  [
    'our own client',
    (device, timeoutMs) => {
      const client = new DeviceClient(device, { connectTimeoutMs: timeoutMs, idleTimeoutMs: timeoutMs })
      return (target, req, res) => passRead(client, { target, caller: CALLER, timeoutMs }, req, res)
    },
  ],
]
