import { fileURLToPath } from 'node:url'
import { startFileNginx } from '../../support/processes/temp-proxy.ts'
import { measureCommand, shellOutput } from '../report/measure-command.ts'
import { command, download, inBothFormats, packetsOf, shellLine, withCpuOf } from '../sides/contenders.ts'
import { CAPTURE, onePercentAtNinety, rangeWords, storedCapture } from '../sides/stored-capture.ts'
import type { Contender, Row, WorkloadMaker } from './row.ts'

const SEARCH = fileURLToPath(new URL('../sides/regexp-search.ts', import.meta.url))
const PATTERN = 'filled [a-z]+ (timeout|reject)'

/** Downloads of one stored capture from an appliance, compared with the usual tools over the same file. */
export const storedDownloads: readonly Row[] = [
  { name: 'raw-tcpdump', what: 'a whole capture, tcpdump -w', make: filtered('') },
  ...(['on', 'off'] as const).map((sendfile) => ({
    name: `raw-nginx-sendfile-${sendfile}`,
    what: `a whole capture, nginx with sendfile ${sendfile} from a file`,
    floor: 0.8,
    goal: 0.95,
    make: againstFileServer(sendfile),
  })),
  {
    name: 'filter-tcp-443',
    what: '`tcp port 443`, tcpdump; by processor time',
    floor: 3,
    goal: 4.5,
    judgedBy: 'cpu',
    make: filtered('tcp port 443'),
    engine: { work: { filter: 'tcp port 443' }, input: (inputs) => inputs.single() },
  },
  {
    name: 'filter-threads',
    what: '`tcp port 443` on all processors, tcpdump',
    floor: 5,
    goal: 7,
    make: filtered('tcp port 443'),
  },
  { name: 'filter-port-53', what: '`port 53`, tcpdump', make: filtered('port 53') },
  { name: 'filter-icmp', what: '`icmp`, tcpdump', make: filtered('icmp') },
  {
    name: 'filter-needle',
    what: 'one host of few packets, tcpdump',
    floor: 20,
    goal: 100,
    make: async (parts) => filtered(`host ${await parts.inputs.needleHost()}`)(parts),
  },
  {
    name: 'slice',
    what: '`Slice=64`, editcap -s 64',
    floor: 6,
    goal: 8,
    make: sliced(),
    engine: { work: { sliceBytes: 64 }, input: (inputs) => inputs.single() },
  },
  { name: 'timerange', what: '1 % of the time at 90 %, editcap -A -B', floor: 30, goal: 100, make: ranged() },
  {
    name: 'count-tcp-443',
    what: 'an exact count of `tcp port 443`, tcpdump --count',
    make: counted('tcp port 443'),
  },
  { name: 'count-port-53', what: 'an exact count of `port 53`, tcpdump --count', make: counted('port 53') },
  {
    name: 'pcapng',
    what: '`Format=pcapng` of a whole capture, the same in PCAP; by processor time',
    floor: 0.9,
    goal: 1,
    judgedBy: 'cpu',
    make: inPcapng(),
  },
  { name: 'regex', what: '`FilterRE`, RegExp of JavaScript', floor: 10, goal: 30, make: searched() },
]

function filtered(filter: string): WorkloadMaker {
  return async (parts) => {
    const { device, path, inputBytes } = await storedCapture(parts)
    const query = new URLSearchParams({
      StreamName: CAPTURE,
      ...(filter === '' ? {} : { FilterBPF: filter }),
    })
    const ours = download('single', device, `/api/v1/pcap/single?${query}`)
    // Run by root, tcpdump would give /dev/null to its own user (-Z).
    const words = (target: string) =>
      [
        'tcpdump',
        '-Z',
        'root',
        '--nano',
        '-r',
        path,
        '-w',
        target,
        ...(filter === '' ? [] : [filter]),
      ] as const
    return {
      inputBytes,
      ours,
      peer: command('tcpdump', words('/dev/null'), shellLine(words('-'))),
    }
  }
}

/** Both read the packets and send none. */
function counted(filter: string): WorkloadMaker {
  return async (parts) => {
    const { device, path, inputBytes } = await storedCapture(parts)
    const { url, credentials, pid } = device
    const query = new URLSearchParams({ StreamName: CAPTURE, FilterBPF: filter })
    const curl = ['-fsS', '-u', credentials, `${url}/api/v1/pcap/count?${query}`]
    const tcpdump = ['-Z', 'root', '-r', path, '--count', filter]
    return {
      inputBytes,
      ours: {
        label: 'count',
        pid,
        run: () => withCpuOf(pid, () => measureCommand('curl', curl, { pid })),
        output: async () => {
          const lines = (await shellOutput(shellLine(['curl', ...curl]))).trim().split('\n')
          const { end, packets } = JSON.parse(lines.at(-1) ?? '')
          return end === true ? `${packets} packets` : 'no end'
        },
      },
      peer: {
        label: 'tcpdump --count',
        run: () => measureCommand('tcpdump', tcpdump),
        output: async () => (await shellOutput(shellLine(['tcpdump', ...tcpdump]))).trim(),
      },
    }
  }
}

function sliced(): WorkloadMaker {
  return async (parts) => {
    const { device, path, inputBytes } = await storedCapture(parts)
    const ours = download('Slice', device, `/api/v1/pcap/single?StreamName=${CAPTURE}&Slice=64`)
    const words = (target: string) => ['editcap', '-F', 'nsecpcap', '-s', '64', path, target] as const
    return { inputBytes, ours, peer: command('editcap', words('/dev/null'), shellLine(words('-'))) }
  }
}

function inPcapng(): WorkloadMaker {
  return async (parts) => {
    const { device, inputBytes } = await storedCapture(parts)
    return { inputBytes, ...inBothFormats(device, `/api/v1/pcap/single?StreamName=${CAPTURE}`) }
  }
}

function searched(): WorkloadMaker {
  return async (parts) => {
    const { device, path, inputBytes } = await storedCapture(parts)
    const query = new URLSearchParams({ StreamName: CAPTURE, FilterRE: PATTERN })
    const ours = download('FilterRE', device, `/api/v1/pcap/single?${query}`)
    const words = (target: string) => [process.execPath, SEARCH, PATTERN, path, target] as const
    return { inputBytes, ours, peer: command('RegExp', words('/dev/null'), shellLine(words('/dev/stdout'))) }
  }
}

/** One percent of the time, before which a tool that scans has read nine tenths. */
function ranged(): WorkloadMaker {
  return async (parts) => {
    const stored = await storedCapture(parts)
    const { beginNs, endNs, target } = onePercentAtNinety(stored)
    const words = (output: string) => rangeWords(stored.path, { beginNs, endNs }, output)
    return {
      inputBytes: stored.inputBytes,
      ours: download('timerange', stored.device, target),
      peer: command('editcap -A -B', words('/dev/null'), shellLine(words('-'))),
    }
  }
}

function againstFileServer(sendfile: 'on' | 'off'): WorkloadMaker {
  return async (parts) => {
    const { device, path, inputBytes } = await storedCapture(parts)
    const { url, pid } = parts.owned.use(await startFileNginx(path, sendfile))
    const ours = download('single', device, `/api/v1/pcap/single?StreamName=${CAPTURE}`)
    const peer: Contender = {
      label: 'nginx',
      pid,
      run: () => withCpuOf(pid, () => measureCommand('curl', ['-fsS', url, '-o', '/dev/null'], { pid })),
      output: () => packetsOf(shellLine(['curl', '-fsS', url])),
    }
    return { inputBytes, ours, peer }
  }
}
