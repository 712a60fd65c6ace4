/**
 * Instructions per packet of the engine's own work, counted by callgrind: the same on a busy machine as on a quiet one.
 */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { tempFolder } from '../../support/temp-folder.ts'
import { shellLine } from '../sides/contenders.ts'
import { ENGINE_RUN, type EngineWork, engineArguments, importAsStreams } from '../sides/engine-run.ts'
import { shellOutput } from './measure-command.ts'

/**
 * One thread does the work. Starting the program and reading the indexes is not counted. Runs over 64 MiB differ by up
 * to 3 %, depending on how many slabs are made while the reader is behind; runs over 512 MiB by an eighth of that.
 */
export async function instructionsPerPacket(
  work: EngineWork,
  paths: readonly string[],
  engineRun = ENGINE_RUN,
): Promise<number> {
  await using folder = await tempFolder()
  const streams = await importAsStreams(folder.path, paths)
  const words = [engineRun, ...(await engineArguments(folder.path, work))]
  const whole = await count(folder.path, [...words, ...streams])
  const start = await count(folder.path, [...words, '--empty', ...streams])
  return (whole.instructions - start.instructions) / whole.packets
}

async function count(folder: string, words: readonly string[]) {
  const counts = join(folder, 'callgrind.out')
  const valgrind = [
    'valgrind',
    '--quiet',
    '--fair-sched=yes',
    '--tool=callgrind',
    `--callgrind-out-file=${counts}`,
  ]
  const { packets } = JSON.parse(await shellOutput(shellLine([...valgrind, ...words])))
  const instructions = Number(/^totals: (\d+)/m.exec(await readFile(counts, 'utf8'))?.[1])
  return { packets: Number(packets), instructions }
}
