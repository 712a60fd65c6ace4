/**
 * Passes a call through that only reads something of a device and ends: status, versions, lists.
 * It may be sent again when a kept connection turns out to be closed, so nothing that changes a device
 * comes this way; that, and what goes on until the caller leaves, is DeviceProxy's. There are two ways
 * because these calls are nearly all that there are: http-proxy, and the HTTP client of Node under it,
 * take longer for one than all else that is done for it.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Device } from './device.ts'
import { KeptConnections } from './kept-connections.ts'
import { ReadCall } from './read-call.ts'

export interface DeviceReadsLimits {
  /** A device that sends nothing for so long has failed. */
  readonly timeoutMs: number
}

export class DeviceReads {
  readonly #timeoutMs: number
  readonly #connections = new WeakMap<Device, KeptConnections>()

  constructor(limits: DeviceReadsLimits) {
    this.#timeoutMs = limits.timeoutMs
  }

  /**
   * Answers `res` with what the device says to `target` (path and query). Resolves when all of the
   * answer has been handed over or the client has been cut off. Before the first byte it fails with
   * device-unreachable, device-timeout, device-protocol, device-rejected, bad-parameter, or with draining
   * when the client leaves. REQUIRES: the request has no body.
   */
  forward(device: Device, target: string, req: IncomingMessage, res: ServerResponse): Promise<void> {
    return new ReadCall(this.#connectionsOf(device), device, target, req, res).done
  }

  #connectionsOf(device: Device): KeptConnections {
    const kept = this.#connections.get(device)
    if (kept !== undefined) return kept
    const connections = new KeptConnections(device, this.#timeoutMs)
    this.#connections.set(device, connections)
    return connections
  }
}
