/**
 * Where our side of a row spends its time: samples of the stacks of the working process, a thousand times per second,
 * while the row runs. Writes `<row>.svg`, a flame graph, and `<row>.folded` (a stack and its samples on each line) into
 * the current folder, and prints the functions that were on top most often. For rows that are only the engine's work it
 * also prints the instructions per packet.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { tempFolder } from '../../support/temp-folder.ts'
import type { BenchParts, Row } from '../rows/row.ts'
import { shellLine } from '../sides/contenders.ts'
import { whatIsMissing } from './compare.ts'
import { flameGraph } from './flame-graph.ts'
import { instructionsPerPacket } from './instructions.ts'
import { shellOutput } from './measure-command.ts'

const SAMPLES_PER_SECOND = 999
const SAMPLED_MS = 5_000
const PRINTED_FUNCTIONS = 25

export async function profileRow(row: Row, parts: BenchParts): Promise<void> {
  const missing = whatIsMissing({ needs: { perf: 'linux-perf', valgrind: 'valgrind', ...row.needs } })
  if (missing !== undefined) throw new Error(missing)
  const stacks = await sampledStacks(row, parts)
  await writeFile(`${row.name}.svg`, flameGraph(row.name, stacks))
  await writeFile(`${row.name}.folded`, [...stacks].map((each) => `${each.join(' ')}\n`).join(''))
  printTop(stacks)
  process.stdout.write(`${row.name}.svg is the flame graph, ${row.name}.folded has its stacks\n`)
  if (row.engine === undefined) return
  const { paths } = await row.engine.input(parts.inputs)
  const instructions = await instructionsPerPacket(row.engine.work, paths)
  process.stdout.write(`${instructions.toFixed(1)} instructions per packet of the engine's work\n`)
}

/** If our side is not a permanent process, it is commands started by this process, and perf follows those. */
async function sampledStacks(row: Row, parts: BenchParts): Promise<ReadonlyMap<string, number>> {
  const { ours } = await row.make(parts)
  await using folder = await tempFolder()
  const data = join(folder.path, 'perf.data')
  await ours.run()
  const words = ['record', '-q', '-e', 'cpu-clock', '-F', String(SAMPLES_PER_SECOND), '-g', '-o', data]
  const pid = String(ours.pid ?? process.pid)
  const perf = spawn('perf', [...words, '-p', pid], { stdio: ['ignore', 'ignore', 'inherit'] })
  const ended = once(perf, 'exit')
  for (const endMs = performance.now() + SAMPLED_MS; performance.now() < endMs; ) await ours.run()
  perf.kill('SIGINT')
  await ended
  const script = ['perf', 'script', '-i', data, '-F', 'comm,ip,sym']
  return foldStacks(await shellOutput(`${shellLine(script)} 2>/dev/null`))
}

/** The stacks of `perf script`, outermost function first, each with its number of samples. */
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
