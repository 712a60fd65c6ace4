/** The two ways to run a side, a download by curl or a command over files, and the digest of their packets. */
import { fileURLToPath } from 'node:url'
import { type Measure, measureCommand, shellOutput } from '../report/measure-command.ts'
import type { Contender } from '../rows/row.ts'
import type { BenchServer } from './bench-fleet.ts'
import { cpuSeconds } from './proxy-world.ts'

const DIGEST = fileURLToPath(new URL('../inputs/pcap-digest.ts', import.meta.url))

/** `curl -o /dev/null` of a path; memory and processor time are the server's. `decoder` turns the body into a PCAP. */
export function download(label: string, server: BenchServer, path: string, decoder = 'cat'): Contender {
  const curl = ['-fsS', '-u', server.credentials, `${server.url}${path}`]
  return {
    label,
    pid: server.pid,
    run: () =>
      withCpuOf(server.pid, () => measureCommand('curl', [...curl, '-o', '/dev/null'], { pid: server.pid })),
    output: () => packetsOf(`${shellLine(['curl', ...curl])} | ${decoder}`),
  }
}

/** A download in pcapng, compared with the same in PCAP. */
export function inBothFormats(
  server: BenchServer,
  path: string,
): { readonly ours: Contender; readonly peer: Contender } {
  const toPcap = 'editcap -F nsecpcap - -'
  return {
    ours: download('pcapng', server, `${path}&Format=pcapng`, toPcap),
    peer: download('PCAP', server, path),
  }
}

/** A command; `toStdout` is the shell line that outputs the same result as a PCAP. */
export function command(label: string, words: readonly [string, ...string[]], toStdout: string): Contender {
  const [program, ...args] = words
  return { label, run: () => measureCommand(program, args), output: () => packetsOf(toStdout) }
}

/** The measurement, with the processor time that a process spent meanwhile. */
export async function withCpuOf(pid: number, run: () => Promise<Measure>): Promise<Measure> {
  const before = cpuSeconds(pid)
  return { ...(await run()), cpuSeconds: cpuSeconds(pid) - before }
}

/** Words as one shell line, each quoted. */
export function shellLine(words: readonly string[]): string {
  return words.map((word) => `'${word.replaceAll("'", `'\\''`)}'`).join(' ')
}

export interface PcapFacts {
  readonly digest: { readonly packets: number }
  readonly bytes: number
  readonly firstNs: string
  readonly lastNs: string
}

/** The output of pcap-digest.ts for the PCAP that a shell line prints. */
export async function pcapFacts(line: string): Promise<PcapFacts> {
  return JSON.parse(await shellOutput(`${line} | ${shellLine([process.execPath, DIGEST])}`))
}

export async function packetsOf(line: string): Promise<string> {
  return JSON.stringify((await pcapFacts(line)).digest)
}
