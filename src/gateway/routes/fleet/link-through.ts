/**
 * The link of a device's answer, which is relative to the device, as a link of the gateway, or undefined if it is not
 * a valid link. A device is not trusted: its link must stay below its own path.
 */
export function linkThrough(device: string, link: unknown): string | undefined {
  if (typeof link !== 'string' || !link.startsWith('/')) return undefined
  const url = URL.parse(`http://device${link}`)
  return url === null ? undefined : `/devices/${device}${url.pathname}${url.search}`
}
