import { connect as connectTcp, isIP, type OnReadOpts, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import type { Device } from './device.ts'

/** Whether the device is spoken to over TLS. */
export function isTlsDevice({ url }: Device): boolean {
  return url.protocol === 'https:'
}

/** Begins to connect to a device, with all that its connections must be made with. */
export function connectToDevice(device: Device, onread: OnReadOpts): Socket {
  const { url, connectOptions } = device
  const isTls = isTlsDevice(device)
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1')
  const port = Number(url.port) || (isTls ? 443 : 80)
  const options = { host, port, onread, ...connectOptions }
  if (!isTls) return connectTcp(options)
  return connectTls(isIP(host) === 0 ? { ...options, servername: host } : options)
}
