/** The forms of a time that a user may write: the table of the reference, and what an error lists. */

export interface TimeForm {
  /** Texts of this form. The first is the one that errors show. */
  readonly examples: readonly [string, ...string[]]
  readonly says: string
  /** Programs whose times have this form. */
  readonly printedBy: string
}

/** In the order of the reference. */
export const TIME_FORMS = {
  epoch: {
    examples: ['1793610060', '1793610060123', '1793610060123456', '1793610060123456789'],
    says:
      'An epoch time in TSUnit. Without TSUnit, 9 to 11 digits are seconds, 12 to 14 milliseconds, 15 to 17 microseconds, ' +
      'and all other numbers are nanoseconds. Without TSUnit, a number of 9 to 18 digits is rejected outside 1990 to 2106.',
    printedBy: '`date +%s`, `date +%s%N`, Grafana, Splunk',
  },
  epochFraction: {
    examples: ['1793610060.123456', '1793610060,5', '1793610060123.25'],
    says: 'An epoch time with a fraction, which must be a whole number of nanoseconds.',
    printedBy: 'Zeek, `tshark -t e`, `tcpdump -tt`, `date +%s.%N`',
  },
  epochSeconds: {
    examples: ['@1793610060', '@1793610060.5'],
    says: 'An epoch time in seconds, whatever TSUnit says.',
    printedBy: '`date -d`, `journalctl --since`',
  },
  compact: {
    examples: ['20261102_090100', '20261102T090100Z'],
    says: 'A date and time without separators; `T`, `_` or a space between the two. With a zone as below, otherwise local.',
    printedBy: 'scripts for the appliance, ISO 8601 basic format',
  },
  zoned: {
    examples: [
      '2026-11-02T09:01:00Z',
      '2026-11-02T09:01:00.123456+0000',
      '2026-11-02 10:01:00,5+01:00',
      'Mon 2026-11-02 09:01:00 UTC',
    ],
    says:
      'A date and time with a zone (RFC 3339 and its relatives): `Z`, `UTC`, `GMT`, `+01:00`, `+0100` or `+01`. `T`, `_` or a space ' +
      'before the time, a point or comma before the fraction; seconds may be left out, and `/` may replace `-`. ' +
      'A `+` that arrives as a space is understood.',
    printedBy:
      'Suricata EVE, Zeek, tshark, Grafana, `date -Ins`, `date --rfc-3339=ns`, `journalctl -o short-iso`',
  },
  local: {
    examples: ['2026-11-02 09:01', '2026-11-02T09:01:00', '2026/11/02 09:01:00.25'],
    says: 'The same without a zone: a local time in TSZone.',
    printedBy: '`tcpdump -tttt`, `tshark -t ad`, Grafana, journalctl, spreadsheets, the page of capfleet',
  },
  date: {
    examples: ['2026-11-02', '2026/11/02'],
    says: 'The start of a day in TSZone. As TSEnd, it excludes that day.',
    printedBy: '`date +%F`',
  },
  namedMonth: {
    examples: [
      'Nov  2, 2026 09:01:00.123456000 UTC',
      'Mon Nov  2 09:01:00 UTC 2026',
      'Mon, 02 Nov 2026 09:01:00 +0000',
      '02/Nov/2026:09:01:00 +0000',
    ],
    says: 'With an English month. Without a zone, it is a local time in TSZone.',
    printedBy:
      'Wireshark and tshark (`frame.time`), `date`, `date -R`, HTTP headers, logs of nginx, Apache and HAProxy',
  },
  beforeNow: {
    examples: ['now', 'now-6h', '-15m', '-1w', 'now+1h'],
    says: 'Now, or a time before or after it, by the clock of the program that reads it: one number with `s`, `m`, `h`, `d` (24 hours) or `w`.',
    printedBy: 'Grafana, Splunk, journalctl',
  },
  afterBegin: {
    examples: ['+10m'],
    says: 'For TSEnd: this long after TSBegin.',
    printedBy: '',
  },
  day: {
    examples: ['today', 'yesterday'],
    says: 'The start of that day in TSZone.',
    printedBy: 'journalctl',
  },
} as const satisfies Readonly<Record<string, TimeForm>>

/** One example of each form, for errors and descriptions of parameters. */
export const TIME_FORM_EXAMPLES = [
  ...new Set([
    TIME_FORMS.epoch.examples[0],
    TIME_FORMS.epochFraction.examples[0],
    TIME_FORMS.compact.examples[0],
    TIME_FORMS.zoned.examples[0],
    TIME_FORMS.local.examples[0],
    TIME_FORMS.date.examples[0],
    TIME_FORMS.beforeNow.examples[1],
    TIME_FORMS.beforeNow.examples[2],
    TIME_FORMS.afterBegin.examples[0],
    TIME_FORMS.day.examples[0],
  ]),
].join(', ')
