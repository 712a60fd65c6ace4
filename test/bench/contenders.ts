/** The two ways to run a side: a download by curl, or a command over files. */
import type { BenchServer } from './bench-fleet.ts'
import { measureCommand, shellOutput } from './measure-command.ts'
import type { Contender } from './workload.ts'

/** `curl -o /dev/null` of a path; memory is the server's. `decoder` turns the body into a PCAP. */
export function download(label: string, server: BenchServer, path: string, decoder = 'cat'): Contender {
  const curl = ['-fsS', '-u', server.credentials, `${server.url}${path}`]
  return {
    label,
    run: () => measureCommand('curl', [...curl, '-o', '/dev/null'], { pid: server.pid }),
    countPackets: () => countPackets(`${shellLine(['curl', ...curl])} | ${decoder}`),
  }
}

/** A command; `toStdout` is the shell line that gives the same result as a PCAP. */
export function command(label: string, words: readonly [string, ...string[]], toStdout: string): Contender {
  const [program, ...args] = words
  return {
    label,
    run: () => measureCommand(program, args),
    countPackets: () => countPackets(toStdout),
  }
}

/** Words as one shell line, each quoted. */
export function shellLine(words: readonly string[]): string {
  return words.map((word) => `'${word.replaceAll("'", `'\\''`)}'`).join(' ')
}

async function countPackets(line: string): Promise<number> {
  const output = await shellOutput(`${line} | tcpdump -r - --count 2>/dev/null`)
  const match = /^(\d+) packet/.exec(output)
  if (match === null) throw new Error(`no count of packets in "${output.trim()}" of ${line}`)
  return Number(match[1])
}
