/** Parsers for the output of ethtool(8) about a network interface, which may be empty. */

export interface Feature {
  readonly isOn: boolean
  /** Whether the driver does not allow changing it. */
  readonly isFixed: boolean
}

/** The current value, and the maximum; undefined = the driver does not report it. */
export interface Setting {
  readonly current: number | undefined
  readonly max: number | undefined
}

/** ethtool -k: "generic-receive-offload: on [fixed]". */
export function parseFeatures(output = ''): ReadonlyMap<string, Feature> {
  const lines = output.matchAll(/^\s*([\w-]+): (on|off)\b(.*)$/gm)
  return new Map(
    [...lines].map(([, name = '', state, rest = '']) => [
      name,
      { isOn: state === 'on', isFixed: rest.includes('[fixed]') },
    ]),
  )
}

/** ethtool -g: entries of the receive ring. */
export function parseRxRing(output = ''): Setting {
  return twoTables(output, /^RX:\s+(\d+)$/m)
}

/** ethtool -l: receive queues; usually they serve both directions. */
export function parseRxQueues(output = ''): Setting {
  const [own, combined] = [twoTables(output, /^RX:\s+(\d+)$/m), twoTables(output, /^Combined:\s+(\d+)$/m)]
  return {
    current: sum(own.current, combined.current),
    max: sum(own.max, combined.max),
  }
}

/** ethtool -T: whether the interface can timestamp every arriving packet itself. */
export function parseHardwareStamps(output = ''): boolean {
  const filters = output.split(/^Hardware Receive Filter Modes:/m)[1] ?? ''
  return /^\s*hardware-receive\b/m.test(output) && /^\s*all\b/m.test(filters)
}

/** The table of maximums comes first, then that of the current settings. */
function twoTables(output: string, line: RegExp): Setting {
  const [maximums = '', current = ''] = output.split(/^Current hardware settings:/m)
  return { current: numberIn(current, line), max: numberIn(maximums, line) }
}

function numberIn(text: string, line: RegExp): number | undefined {
  const found = line.exec(text)?.[1]
  return found === undefined ? undefined : Number(found)
}

function sum(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined && b === undefined ? undefined : (a ?? 0) + (b ?? 0)
}
