/** Bit numbers of linux/capability.h. */
const CAPABILITIES = { CAP_NET_ADMIN: 12n, CAP_NET_RAW: 13n } as const
export type Capability = keyof typeof CAPABILITIES

/** CapEff of /proc/<pid>/status, a hexadecimal mask; 0 if the text has no such line. */
export function capabilitiesIn(status = ''): bigint {
  const mask = /^CapEff:\s+([0-9a-f]+)$/m.exec(status)?.[1]
  return mask === undefined ? 0n : BigInt(`0x${mask}`)
}

export function hasCapability(mask: bigint, name: Capability): boolean {
  return (mask & (1n << CAPABILITIES[name])) !== 0n
}
