/** Section 2 of the decisions: bodies of lists and of the system paths. */
import assert from 'node:assert/strict'
import { STATUS_MEMBERS, wrongMembers } from '../../support/devices/status-members.ts'
import { checkMembers } from '../check-claim.ts'
import { type Claim, INTEGER, LIST, NUMBER, OBJECT, row, STRING } from '../claim.ts'
import { ALPHA, packetsOf, RING } from '../contract-captures.ts'
import type { Place } from '../place.ts'
import { splitsOf } from './legacy-claims.ts'

const NS = /^\d{19}$/
const all = (names: readonly string[], type: unknown) => Object.fromEntries(names.map((name) => [name, type]))

type Entry = Readonly<Record<string, unknown>>

async function entryOf(at: Place, name: string, query = ''): Promise<Entry> {
  const list = (await at.ask(`/stream/list${query}`)).json().List as readonly Entry[]
  const entry = list.find(({ StreamName }) => StreamName === name)
  assert.ok(entry, `${name} is in the list`)
  return entry
}

export const LIST_CLAIMS: readonly Claim[] = [
  row('D2-21', 'stream/list has Path, StreamList and List, newest first.', {
    get: '/stream/list',
    members: { Path: '/capture/', StreamList: true, List: LIST },
    see: (seen) => {
      const starts = (seen.json().List as readonly Entry[]).map(({ StartTS }) => BigInt(String(StartTS)))
      assert.deepEqual(
        starts,
        starts.toSorted((a, b) => Number(b - a)),
      )
    },
  }),
  row('D2-22', 'Its entries have the legacy members; their links are relative.', {
    act: async (at) => {
      checkMembers(await entryOf(at, ALPHA), {
        id: /^\d+$/,
        Path: ALPHA,
        ...all(['PCAP', 'Del', 'Link'], new RegExp(`^${at.linkBase}/(api/v1/pcap|pcap|stream)/.*${ALPHA}`)),
        Date: NUMBER,
        Size: INTEGER,
        IsActive: false,
        Type: STRING,
        Desc: STRING,
      })
    },
  }),
  row('D2-23', 'They have exact times and counts, state and percentage beside them.', {
    act: async (at) => {
      const packets = packetsOf('alpha')
      checkMembers(await entryOf(at, ALPHA), {
        StreamName: ALPHA,
        StartTS: String(packets[0]?.ns),
        EndTS: String((packets.at(-1)?.ns ?? 0n) + 1n),
        PacketCnt: String(packets.length),
        ByteCnt: /^\d+$/,
        State: 'closed',
        ValidPct: 100,
      })
    },
  }),
  row('D2-24', 'Limit, After, From, To and Format=csv choose of the list.', {
    act: async (at) => {
      const first = (await at.ask('/stream/list?Limit=1')).json()
      const [entry] = first.List as readonly Entry[]
      const after = at.route === 'fleet' ? first.Next : entry?.StreamName
      const second = (await at.ask(`/stream/list?Limit=1&After=${encodeURIComponent(String(after))}`)).json()
      assert.notEqual((second.List as readonly Entry[])[0]?.StreamName, entry?.StreamName)
      const { ns = 0n } = packetsOf('beta')[0] ?? {}
      const chosen = (await at.ask(`/stream/list?From=${ns}&To=${ns + 1n}`)).json().List as readonly Entry[]
      assert.deepEqual(
        chosen.map(({ StreamName }) => StreamName),
        ['beta_20260921_1413'],
      )
      // Half-open: a capture that begins at the end, or ends at the start, is outside.
      const namesIn = async (from: bigint, to: bigint) =>
        (await at.ask(`/stream/list?From=${from}&To=${to}`)).text.match(/beta_20260921_1413/)
      const endNs = (packetsOf('beta').at(-1)?.ns ?? 0n) + 1n
      assert.ok((await namesIn(endNs - 1n, endNs)) !== null)
      assert.deepEqual([await namesIn(ns - 1n, ns), await namesIn(endNs, endNs + 1n)], [null, null])
      const csv = await at.ask('/stream/list?Format=csv')
      assert.match(csv.text, /^(Device,)?StreamName,StartTS,EndTS,/)
      assert.match(String(csv.headers['content-type']), /^text\/csv/)
    },
  }),
  row(
    'D2-25',
    'ssize and stime have Path, SplitFile and List.',
    ...['ssize?StreamView=split_10MB', 'stime?StreamView=split_1sec'].map((view) => ({
      get: `/stream/${view}&StreamName=${ALPHA}`,
      members: { Path: new RegExp(`^/capture/${ALPHA}/split_`), SplitFile: true, List: LIST },
    })),
  ),
  row(
    'D2-26',
    'Their entries have id, path by the time, link, exact times, size, counts, percentage and description.',
    {
      act: async (at) => {
        const splits = await splitsOf(at, `/stream/stime?StreamName=${ALPHA}&StreamView=split_1sec`)
        assert.deepEqual(
          splits.map(({ id }) => id),
          splits.map((_, index) => String(index)),
        )
        for (const split of splits) {
          checkMembers(split, {
            Path: /^\d{8}_\d{2}:\d{2}:\d{2}\.\d{3}\.\d{3}\.\d{3}$/,
            PCAP: `${at.linkBase}/pcap/splittime?StreamName=${ALPHA}&Start=${split.StartTS}ULL&Stop=${split.StopTS}ULL&&`,
            ...all(['StartTS', 'StopTS'], NS),
            Size: INTEGER,
            PacketCnt: INTEGER,
            ValidPct: INTEGER,
            Desc: STRING,
          })
        }
        const counted = splits.reduce((sum, { PacketCnt }) => sum + Number(PacketCnt), 0)
        assert.equal(counted, packetsOf('alpha').length)
      },
    },
  ),
  row('D2-27', 'port_stats, io_stats, version and status have the members of section 2.', {
    get: '/api/v1/system/status',
    see: (seen) => {
      for (const [name, members] of Object.entries(STATUS_MEMBERS))
        assert.deepEqual(wrongMembers(seen.json()[name] as Entry, members), [])
    },
  }),
  row('D2-28', 'Values come from the machine.', {
    get: '/api/v1/system/status',
    members: { 'other.MemFree': INTEGER },
    see: (seen) => {
      const { MemFree, UptimeHour } = seen.json().other as Entry
      assert.ok(Number(MemFree) > 0 && Number(UptimeHour) > 0)
    },
  }),
  row('D2-29', 'What the machine lacks keeps its type, reads 0 or false and is named in unavailable.', {
    get: '/api/v1/system/status',
    members: { 'fan.unavailable': LIST, fan: OBJECT },
    see: (seen) => {
      const fan = seen.json().fan as Entry
      for (const name of fan.unavailable as string[]) assert.equal(fan[name], 0)
    },
  }),
  row('D2-30', 'A trimmed capture says so in State and ValidPct.', {
    device: 'ring',
    act: async (at) => checkMembers(await entryOf(at, RING.trimmed), { State: 'trimmed', ValidPct: 39 }),
  }),
]
