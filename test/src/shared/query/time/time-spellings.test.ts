/** Times as other programs print them: each is read as the right instant, or refused with what to write instead. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseQueryTime } from '../../../../../src/shared/query/time/query-time.ts'

/** 2026-11-02 09:01:00 UTC, a Monday. */
const MINUTE_NS = 1_793_610_060_000_000_000n
const NOW_NS = MINUTE_NS + 3_600_000_000_000n
const MICROSECONDS_NS = MINUTE_NS + 123_456_000n
const MIDNIGHT_NS = 1_793_577_600_000_000_000n

type Spelling = readonly [program: string, text: string, expected: bigint | RegExp]

const SPELLINGS: readonly Spelling[] = [
  ['Zeek ts', '1793610060.123456', MICROSECONDS_NS],
  ['Zeek, JSON as ISO 8601', '2026-11-02T09:01:00.123456Z', MICROSECONDS_NS],
  ['zeek-cut -d', '2026-11-02T10:01:00+0100', MINUTE_NS],
  ['zeek-cut -u', '2026-11-02T09:01:00+0000', MINUTE_NS],
  ['Zeek, JSON of old versions', '1.793610060123456e+09', /has an exponent: write all digits/],
  ['Suricata EVE', '2026-11-02T09:01:00.123456+0000', MICROSECONDS_NS],
  ['Suricata EVE, "+" not escaped', '2026-11-02T09:01:00.123456 0000', MICROSECONDS_NS],
  ['Suricata EVE in Berlin', '2026-11-02T10:01:00.123456+0100', MICROSECONDS_NS],
  ['Suricata fast.log', '11/02/2026-09:01:00.123456', /either way round: put the year first/],
  ['Suricata log', '2/11/2026 -- 09:01:00', /either way round: put the year first/],
  ['Snort', '11/02-09:01:00.123456', /either way round: put the year first/],
  ['tshark -e frame.time_epoch', '1793610060.123456000', MICROSECONDS_NS],
  ['tshark -e frame.time', 'Nov  2, 2026 09:01:00.123456000 UTC', MICROSECONDS_NS],
  ['tshark 4.2 -e frame.time', '2026-11-02T10:01:00.123456000+0100', MICROSECONDS_NS],
  ['tshark in Berlin', 'Nov  2, 2026 10:01:00.123456000 CET', /not clear from its letters: write an offset/],
  ['tshark -t ad', '2026-11-02 09:01:00.123456000', MICROSECONDS_NS],
  ['tshark -t ud', '2026-11-02 09:01:00.123456Z', MICROSECONDS_NS],
  ['tshark -t adoy', '2026/306 09:01:00.123456', /is not in a form that is understood/],
  ['tshark -t a', '09:01:00.123456', /has no date: put it first/],
  ['tcpdump -tt', '1793610060.123456', MICROSECONDS_NS],
  ['tcpdump -tttt', '2026-11-02 09:01:00.123456', MICROSECONDS_NS],
  ['Grafana URL', '1793610060123', MINUTE_NS + 123_000_000n],
  ['Grafana now', 'now', NOW_NS],
  ['Grafana last hour', 'now-1h', MINUTE_NS],
  ['Grafana last week', 'now-1w', NOW_NS - 604_800_000_000_000n],
  ['Grafana last month', 'now-1M', /is not a relative time: give one number with s, m, h, d or w/],
  ['Grafana today', 'now/d', /rounds to a unit, which is not supported: give today/],
  ['Grafana yesterday', 'now-1d/d', /rounds to a unit, which is not supported: give today/],
  ['Grafana table', '2026-11-02 09:01:00.123', MINUTE_NS + 123_000_000n],
  ['Grafana URL, ISO', '2026-11-02T09:01:00.000Z', MINUTE_NS],
  ['journalctl -o short', 'Nov 02 09:01:00', /has no year/],
  ['journalctl -o short-full', 'Mon 2026-11-02 09:01:00 UTC', MINUTE_NS],
  ['journalctl -o short-full, wrong day', 'Tue 2026-11-02 09:01:00 UTC', /is not a valid date and time/],
  ['journalctl -o short-full in Berlin', 'Mon 2026-11-02 10:01:00 CET', /not clear from its letters/],
  ['journalctl -o short-iso', '2026-11-02T10:01:00+0100', MINUTE_NS],
  ['journalctl -o short-iso-precise', '2026-11-02T09:01:00.123456+00:00', MICROSECONDS_NS],
  ['journalctl -o short-unix', '1793610060.123456', MICROSECONDS_NS],
  ['journalctl --since', '@1793610060', MINUTE_NS],
  ['journalctl --since yesterday', 'yesterday', MIDNIGHT_NS - 86_400_000_000_000n],
  ['journalctl --since today', 'today', MIDNIGHT_NS],
  ['journalctl --since "5min ago"', '5min ago', /is not a relative time: give one number/],
  ['journalctl --since date', '2026-11-02', MIDNIGHT_NS],
  ['Splunk _time', '1793610060.123', MINUTE_NS + 123_000_000n],
  ['Splunk _time as text', '2026-11-02T04:01:00.000-05:00', MINUTE_NS],
  ['Splunk earliest', '-60m', MINUTE_NS],
  ['Splunk earliest, rounded', '-24h@h', /rounds to a unit/],
  ['Splunk earliest, day', '@d', /rounds to a unit/],
  ['Splunk earliest, absolute', '11/02/2026:09:01:00', /either way round: put the year first/],
  ['Splunk real time', 'rt-5m', /is not in a form that is understood/],
  ['Splunk months', '-1mon', /is not a relative time/],
  ['Excel serial', '46328.37569', /spreadsheets count days in this way/],
  ['Excel, United States', '11/2/2026 9:01', /either way round: put the year first/],
  ['Excel, Germany', '02.11.2026 09:01', /either way round: put the year first/],
  ['Excel, ISO', '2026-11-02 09:01', MINUTE_NS],
  ['Excel, AM and PM', '2026-11-02 9:01:00 AM', /has a 12-hour clock: write hours from 00 to 23/],
  ['Excel, day and month name', '2-Nov-26', /is not in a form that is understood/],
  ['CSV without separators', '202611020901', /outside of 1990 to 2106; give TSUnit, or write/],
  ['CSV without separators, seconds', '20261102090100', /outside of 1990 to 2106; give TSUnit, or write/],
  ['date', 'Mon Nov  2 09:01:00 UTC 2026', MINUTE_NS],
  ['date in Berlin', 'Mon Nov  2 10:01:00 CET 2026', /not clear from its letters/],
  ['ctime()', 'Mon Nov  2 09:01:00 2026', MINUTE_NS],
  ['date -R', 'Mon, 02 Nov 2026 10:01:00 +0100', MINUTE_NS],
  ['HTTP', 'Mon, 02 Nov 2026 09:01:00 GMT', MINUTE_NS],
  ['date -Is', '2026-11-02T10:01:00+01:00', MINUTE_NS],
  ['date -Ins', '2026-11-02T09:01:00,123456000+00:00', MICROSECONDS_NS],
  ['date --rfc-3339=ns', '2026-11-02 09:01:00.123456000+00:00', MICROSECONDS_NS],
  ['date +%s', '1793610060', MINUTE_NS],
  ['date +%s%N', '1793610060123456000', MICROSECONDS_NS],
  ['date +%F', '2026-11-02', MIDNIGHT_NS],
  ['date +%Y%m%d', '20261102', /write the date as 2026-11-02/],
  ['date +%Y%m%d_%H%M%S', '20261102_090100', MINUTE_NS],
  ['ISO 8601, basic', '20261102T090100Z', MINUTE_NS],
  ['PostgreSQL', '2026-11-02 09:01:00.123456+00', MICROSECONDS_NS],
  ['nginx error log', '2026/11/02 09:01:00', MINUTE_NS],
  ['.NET', '2026-11-02T09:01:00.1234560Z', MICROSECONDS_NS],
  ['a leap second', '2016-12-31T23:59:60Z', 1_483_228_800_000_000_000n],
  ['picoseconds', '2026-11-02T09:01:00.123456000000Z', /finer than nanoseconds/],
]

for (const [program, text, expected] of SPELLINGS) {
  const read = (): bigint =>
    parseQueryTime(text, { parameter: 'TSBegin', unit: undefined, zone: 'UTC', nowNs: NOW_NS, isEnd: false })
      .ns
  test(`${program}: ${text}`, () => {
    if (typeof expected === 'bigint') assert.equal(read(), expected)
    else assert.throws(read, { code: 'bad-parameter', message: expected })
  })
}
