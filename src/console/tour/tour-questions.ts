/**
 * The questions of the tour, about the incident in the traffic that the demo generates
 * (src/demo/traffic/incident-flows.ts). docs/get-started/demo.md has the same questions with their commands.
 */
import type { PageState } from '../base/page-url.ts'

export interface TourQuestion {
  readonly question: string
  /** How to find out on the page. */
  readonly task: string
  /** The filter to type. */
  readonly filter?: string
  /** What it is, and by which one knows it. */
  readonly answer: string
  /** The view in which the answer is visible. */
  readonly show: PageState
}

/** 2026-11-02T09:00:00Z, where the generated traffic begins. */
const BEGIN_NS = 1_793_610_000_000_000_000n

export const TOUR_QUESTIONS: readonly TourQuestion[] = [
  {
    question: 'When does something unusual happen, and at which sites?',
    task: 'Compare the lanes of the timeline, and drag over what one of them has and another has not. The form at the side then shows how many packets each device has there.',
    answer:
      'At 09:02:30 nyc1 (New York) and lon1 (London) have a peak of two seconds, and sgp1 (Singapore) has none. In these three seconds nyc1 and lon1 each have about five times as many packets as sgp1.',
    show: {
      view: 'timeline',
      values: { ...range(150, 153), 'view-from': instant(0), 'view-to': instant(300) },
    },
  },
  inside({
    question: 'Who sends these packets, and to whom?',
    task: 'Keep the range, select nyc1, type the filter, which keeps the first packet of each connection to the servers in London, and press Look inside.',
    filter: 'tcp[tcpflags] == tcp-syn and dst net 10.21.9.0/24',
    answer:
      '10.20.3.77, a computer in New York, tries one address of 10.21.9.0/24 after the other, and one port after the other: it scans the servers in London.',
    values: { ...range(150, 153), Device: 'nyc1' },
  }),
  inside({
    question: 'Which servers accepted a connection?',
    task: 'Select lon1, and keep the packets that accept a connection of 10.20.3.77.',
    filter: 'tcp[tcpflags] == tcp-syn|tcp-ack and dst host 10.20.3.77',
    answer: 'Two, at three ports: 10.21.9.80 at 80 and 443, and 10.21.9.25, a file server, at 445.',
    values: { ...range(150, 153), Device: 'lon1' },
  }),
  inside({
    question: 'To whom else does 10.20.3.77 connect?',
    task: 'Select all five minutes of nyc1, and keep the first packet of each connection from 10.20.3.77 to an address outside of the company.',
    filter: 'tcp[tcpflags] == tcp-syn and src host 10.20.3.77 and not dst net 10.0.0.0/8',
    answer:
      'To 203.0.113.99, 15 times, exactly 20 seconds apart, and since before the scan: it reports to a server outside. Such a beacon shows that the computer is controlled from there.',
    values: { ...range(0, 300), Device: 'nyc1' },
  }),
  inside({
    question: 'What left London after the scan, and did it arrive?',
    task: 'Select nyc1 and lon1 from 09:03 to 09:05, and keep the DNS packets of 10.20.3.77, which is no DNS server. Click on a packet to see its bytes.',
    filter: 'udp port 53 and host 10.20.3.77',
    answer:
      'The file server 10.21.9.25 asks 10.20.3.77 for names that end in customers-csv.example and begin with long hexadecimal numbers: each query carries a part of a file. nyc1 has recorded the same queries a few milliseconds after lon1, so it arrived. The commands in the documentation put the file together.',
    values: { ...range(180, 300), Device: 'lon1,nyc1' },
  }),
]

interface InsideQuestion extends Omit<TourQuestion, 'show'> {
  readonly filter: string
  readonly values: PageState['values']
}

/** A question whose answer is in the packets. */
function inside({ values, ...question }: InsideQuestion): TourQuestion {
  return { ...question, show: { view: 'inside', values: { ...values, FilterBPF: question.filter } } }
}

/** The selection from one second of the traffic to another. */
function range(fromS: number, toS: number): PageState['values'] {
  return { TSBegin: instant(fromS), TSEnd: instant(toS) }
}

function instant(second: number): string {
  return String(BEGIN_NS + BigInt(second) * 1_000_000_000n)
}
