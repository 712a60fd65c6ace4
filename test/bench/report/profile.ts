/**
 * Where our side of a row spends its time: a sample of the stacks of the process that works, a thousand times a second,
 * while the row runs. Writes `<row>.folded` (a stack and its samples on each line, as flame graph programs read it) into the
 * current folder, and prints the functions that were on top most often.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { tempFolder } from '../../support/temp-folder.ts'
import type { BenchParts, Row } from '../rows/row.ts'
import { shellLine } from '../sides/contenders.ts'
import { shellOutput } from './measure-command.ts'

const SAMPLES_PER_SECOND = 999
const SAMPLED_MS = 5_000
const PRINTED_FUNCTIONS = 25

export async function profileRow(row: Row, parts: BenchParts): Promise<void> {
  const { ours } = await row.make(parts)
  if (ours.pid === undefined) throw new Error(`${row.name}: our side is no process that stays`)
  await using folder = await tempFolder()
  const data = join(folder.path, 'perf.data')
  await ours.run()
  const words = ['record', '-q', '-e', 'cpu-clock', '-F', String(SAMPLES_PER_SECOND), '-g', '-o', data]
  const perf = spawn('perf', [...words, '-p', String(ours.pid)], { stdio: ['ignore', 'ignore', 'inherit'] })
  const ended = once(perf, 'exit')
  for (const endMs = performance.now() + SAMPLED_MS; performance.now() < endMs; ) await ours.run()
  perf.kill('SIGINT')
  await ended
  const script = ['perf', 'script', '-i', data, '-F', 'comm,ip,sym']
  const stacks = foldStacks(await shellOutput(`${shellLine(script)} 2>/dev/null`))
  const path = `${row.name}.folded`
  await writeFile(path, [...stacks].map(([stack, samples]) => `${stack} ${samples}\n`).join(''))
  printTop(stacks)
  process.stdout.write(`${path} has the stacks for a flame graph\n`)
}

/** The stacks of `perf script`, outermost function first, each with the number of its samples. */
export function foldStacks(script: string): ReadonlyMap<string, number> {
  const stacks = new Map<string, number>()
  for (const sample of script.split('\n\n')) {
    const [thread, ...frames] = sample.split('\n').filter((line) => line.trim() !== '')
    if (thread === undefined || frames.length === 0) continue
    const names = frames.map((line) =>
      line
        .trim()
        .replace(/^[0-9a-f]+ /, '')
        .replaceAll(';', ':'),
    )
    const stack = [thread.trim(), ...names.reverse()].join(';')
    stacks.set(stack, (stacks.get(stack) ?? 0) + 1)
  }
  return stacks
}

function printTop(stacks: ReadonlyMap<string, number>): void {
  const samplesOf = new Map<string, number>()
  let all = 0
  for (const [stack, samples] of stacks) {
    const top = stack.slice(stack.lastIndexOf(';') + 1)
    samplesOf.set(top, (samplesOf.get(top) ?? 0) + samples)
    all += samples
  }
  const sorted = [...samplesOf].sort((a, b) => b[1] - a[1]).slice(0, PRINTED_FUNCTIONS)
  for (const [name, samples] of sorted) {
    process.stdout.write(`${((100 * samples) / all).toFixed(1).padStart(5)} %  ${name}\n`)
  }
}
