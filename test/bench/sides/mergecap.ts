import type { BenchInput } from '../inputs/bench-inputs.ts'
import type { Contender } from '../rows/row.ts'
import { command, shellLine } from './contenders.ts'

export function mergecap(input: BenchInput): Contender {
  return command('mergecap', mergecapWords(input, '/dev/null'), shellLine(mergecapWords(input, '-')))
}

/** Its result goes through a compressor. */
export function mergecapInto(input: BenchInput, tool: string, decoder: string): Contender {
  const line = `${shellLine(mergecapWords(input, '-'))} | ${tool}`
  return command(`mergecap | ${tool}`, ['sh', '-c', `${line} > /dev/null`], `${line} | ${decoder}`)
}

function mergecapWords({ paths }: BenchInput, target: string): readonly [string, ...string[]] {
  return ['mergecap', '-F', 'nsecpcap', '-w', target, ...paths]
}
